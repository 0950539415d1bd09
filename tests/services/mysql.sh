# shellcheck shell=bash
# MySQL or MariaDB; a private one is MariaDB, from Debian.

service mysql MySQL/MariaDB IDEM_TEST_MYSQL_URL 3306 '^(mysql|mariadb)://' mariadb-server mariadb

# A superuser without a password.
mysql_url() { echo "mysql://root@127.0.0.1:$1/mysql"; }

# A login and a query, since an open port proves neither; without TLS, as the suite connects.
mysql_ask() {
  local client user password host port database options=(--no-defaults --protocol=tcp --connect-timeout=5)
  split_url "$1" || return
  if client=$(command -v mariadb || command -v mysql); then
    # MariaDB's client insists on TLS from 11.4 on. MySQL's does not, and has no such option.
    [ "${client##*/}" = mysql ] || options+=(--skip-ssl)
    MYSQL_PWD=$password "$client" "${options[@]}" -h "$host" -P "${port:-3306}" -u "${user:-root}" \
      -NBe "SELECT CONCAT_WS('|', VERSION(), @@max_connections)" ${database:+"$database"}
  else
    dial "$host" "${port:-3306}" && mysql_greet
  fi
}

# Without a client only the greeting, which names the version; a login takes a digest.
mysql_greet() {
  local head body
  head=$(receive 5)
  [ "${head:8}" != ff ] || { echo "it refuses connections from here" && return 1; }
  [[ $head =~ ^....00000a$ ]] || { echo "this is no MySQL" && return 1; }
  body=$(receive $((16#${head:2:2}${head:0:2} - 1)))
  # The version, ended by a zero.
  echo "$(unhex "$(sed 's/../& /g; s/ 00 .*//; s/ //g' <<<"$body")") (no client to log in with)|"
}

mysql_program() { command -v mariadbd; }

mysql_prepare() {
  "${as_server[@]}" mariadb-install-db --no-defaults --datadir="$home/data/files" \
    --auth-root-authentication-method=normal --skip-test-db || return
  server=("$(mysql_program)" --no-defaults --datadir="$home/data/files" --port="$port" --bind-address=127.0.0.1
    --socket=socket --pid-file="$home/data/pid" --skip-name-resolve --max-connections=200
    --innodb-flush-log-at-trx-commit=2)
}
