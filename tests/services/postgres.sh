# shellcheck shell=bash
# PostgreSQL, from Debian.

service postgres PostgreSQL IDEM_TEST_PG_URL 5432 '^postgres(ql)?://' postgresql postgres

# A superuser without a password.
postgres_url() { echo "postgres://postgres@127.0.0.1:$1/postgres"; }

# A login and a query, since an open port proves neither; without TLS, as the suite connects.
postgres_ask() {
  local user password host port database
  split_url "$1" || return
  if command -v psql >/dev/null; then
    PGSSLMODE=disable PGCONNECT_TIMEOUT=5 psql -XAtqw -d "$1" \
      -c "SELECT current_setting('server_version') || '|' || current_setting('max_connections')"
  else
    dial "$host" "${port:-5432}" && postgres_greet
  fi
}

# A login without psql: what the server says until it is ready, or until it wants a password.
postgres_greet() {
  local startup head body version=''
  startup=00030000$(printf '%s\0' user "${user:-postgres}" database "${database:-${user:-postgres}}" '' | hex)
  unhex "$(printf %08x $((${#startup} / 2 + 4)))$startup" >&3
  while head=$(receive 5) && [[ $head =~ ^(45|4b|4e|52|53|5a)0000....$ ]]; do
    body=$(receive $((16#${head:2} - 4)))
    case $head in
    45*) postgres_fields "$body" | sed -n 's/^M//p' && return 1 ;;
    52*) [ "$body" = 00000000 ] || { echo "of unknown version (no psql to give it a password with)|" && return; } ;;
    53*) body=$(postgres_fields "$body") && [[ $body != server_version$'\n'* ]] || version=${body#*$'\n'} ;;
    5a*) echo "$version|" && return ;;
    esac
  done
  echo "this is no PostgreSQL"
  return 1
}

# Prints the fields of a message a line each; a zero ends them.
postgres_fields() { unhex "$(sed 's/../& /g; s/\<00 /0a/g; s/ //g' <<<"$1")"; }

# Debian installs it by version, outside PATH.
postgres_program() {
  local newest
  newest=$(printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)
  if [ -x "$newest" ]; then echo "$newest"; else command -v initdb; fi
}

postgres_prepare() {
  local program
  program=$(postgres_program)
  "${as_server[@]}" "$program" -D "$home/data/cluster" -U postgres --auth=trust --encoding=UTF8 --locale=C --no-sync ||
    return
  server=("${program%/*}/postgres" -D "$home/data/cluster" -p "$port" -c listen_addresses=127.0.0.1
    -c unix_socket_directories= -c max_connections=200 -c fsync=off)
}
