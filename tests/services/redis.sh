# shellcheck shell=bash
# Redis, from Debian.

service redis Redis IDEM_TEST_REDIS_URL 6379 '^redis://' redis-server redis

redis_url() { echo "redis://127.0.0.1:$1"; }

# A login where the address has one, the choice of the database, and the version.
redis_ask() {
  local user password host port database line
  split_url "$1" || return
  dial "$host" "${port:-6379}" || return
  if [ -n "$password" ]; then
    redis_command AUTH ${user:+"$user"} "$password"
    receive_line && [ "$line" = +OK ] || { echo "$line" && return 1; }
  fi
  redis_command SELECT "${database:-0}"
  receive_line && [[ $line == [+-]* ]] || { echo "this is no Redis" && return 1; }
  [ "$line" = +OK ] || { echo "$line" && return 1; }
  redis_command INFO server
  while receive_line; do
    case $line in
    -*) echo "$line" && return 1 ;;
    redis_version:*) echo "${line#*:}|" && return ;;
    esac
  done
  echo "it does not say its version"
  return 1
}

# Sends words with their lengths in bytes.
redis_command() {
  local LC_ALL=C word
  printf '*%d\r\n' $# >&3
  for word in "$@"; do printf '$%d\r\n%s\r\n' ${#word} "$word" >&3; done
}

redis_program() { command -v redis-server; }

# With the append-only file, as where messages matter, but without waiting for the disk. Its usual title would hide the
# folder from `running`.
redis_prepare() {
  server=("$(redis_program)" --port "$port" --bind 127.0.0.1 --dir "$home/data" --appendonly yes --appendfsync no
    --save '' --set-proc-title no)
}
