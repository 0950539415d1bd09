# shellcheck shell=bash
# NATS with JetStream, from Debian.

service nats NATS IDEM_TEST_NATS_URL 4222 '^nats://' nats-server nats

nats_url() { echo "nats://127.0.0.1:$1"; }

# A login, and a question to JetStream, which is a part that may be off.
nats_ask() {
  local user password host port database line version login='"verbose":false'
  split_url "$1" || return
  dial "$host" "${port:-4222}" || return
  receive_line && [[ $line == "INFO {"* ]] || { echo "this is no NATS" && return 1; }
  version=${line#*\"version\":\"} version=${version%%\"*}
  [ -z "$user" ] || login+=",\"user\":\"$user\",\"pass\":\"$password\""
  printf '%s\r\n' "CONNECT {$login}" "SUB idem.ask 1" "PUB \$JS.API.INFO idem.ask 0" '' PING >&3
  while receive_line; do
    case $line in
    -ERR*) echo "$line" && return 1 ;;
    *'"error":{'*) echo "JetStream answers $line" && return 1 ;;
    '{"type":"io.nats.jetstream.api.v1.account_info_response"'*) echo "$version|" && return ;;
    esac
  done
  echo "version $version, but JetStream is off: nats-server -js"
  return 1
}

nats_program() { command -v nats-server; }

nats_prepare() { server=("$(nats_program)" -js -sd "$home/data" -a 127.0.0.1 -p "$port"); }
