# shellcheck shell=bash
# Makes every service answer, by the order that --help gives.

# The suites run in parallel, each with a pool or two of its own.
wanted_connections=60
compose=(docker compose -f "$root/tests/compose.yaml")
declare -A address answer how

# Finds a service that answers already, or decides where it shall come from.
locate() {
  local name=$1 named=${variable[$1]} port=${standard_port[$1]} usual
  usual=$("${name}_url" "$port")
  if [ -n "${!named:-}" ]; then
    address[$name]=${!named} how[$name]="named by $named"
    [[ ${!named} =~ ${form[$name]} ]] || die "$named holds no address such as $usual"
    answer[$name]=$(ask "$name" "${!named}") ||
      die "$named is set, but no ${title[$name]} answers at $(masked "${!named}"): ${answer[$name]}"
  elif [ -z "${IDEM_TEST_PRIVATE:-}" ] && answer[$name]=$(ask "$name" "$usual"); then
    address[$name]=$usual how[$name]="found on its standard port"
  else
    [ -n "${IDEM_TEST_PRIVATE:-}" ] || ! port_open 127.0.0.1 "$port" ||
      say "not usable, passed over: what listens on port $port (${answer[$name]})"
    how[$name]=${docker:+from tests/compose.yaml} how[$name]=${how[$name]:-private}
  fi
}

# The containers of the compose file; --down knows of them by the mark.
start_containers() {
  local name wanted=()
  for name in "$@"; do
    wanted+=("${container[$name]}")
    address[$name]=$("${name}_url" $((50000 + ${standard_port[$name]})))
  done
  { "${compose[@]}" version && docker info; } >/dev/null 2>&1 ||
    die "--docker needs a running Docker engine and the compose plugin"
  : >"$state/docker"
  "${compose[@]}" up -d --wait "${wanted[@]}" >&2 || die "docker compose could not start ${wanted[*]}"
}

# Private servers, all at once: RabbitMQ alone takes ten seconds. An earlier run may have left one that answers.
start_privates() {
  local name starting=() starters=() pid failed=''
  for name in "$@"; do
    running "$name" pid && ask "$name" "$("${name}_url" "$(cat "$state/$name/port")")" >/dev/null ||
      starting+=("$name")
  done
  [ ${#starting[@]} -eq 0 ] || install_packages "${starting[@]}"
  for name in "${starting[@]}"; do
    start_private "$name" &
    starters+=($!)
  done
  for pid in "${starters[@]}"; do wait "$pid" || failed=yes; done
  [ -z "$failed" ] || die "not every service could be started"
  for name in "$@"; do address[$name]=$("${name}_url" "$(cat "$state/$name/port")"); done
}

# Says what a service is and where, and exports its address.
report() {
  local name=$1 limit
  [ -n "${answer[$name]:-}" ] || answer[$name]=$(ask "$name" "${address[$name]}") ||
    die "${title[$name]} was started, but does not answer: ${answer[$name]}"
  # Warnings of the client come before its last line.
  answer[$name]=${answer[$name]##*$'\n'} limit=${answer[$name]##*|}
  say "${title[$name]} ${answer[$name]%|*}, ${how[$name]}: $(masked "${address[$name]}")"
  if [ -n "$limit" ] && [ "$limit" -lt $wanted_connections ]; then
    say "WARNING: ${title[$name]} allows $limit connections;" \
      "with less than $wanted_connections tests may fail for want of one"
  fi
  export "${variable[$name]}=${address[$name]}"
}

ensure_services() {
  local name wanted=() missing=()
  for name in "${names[@]}"; do
    if skipped "$name"; then unset "${variable[$name]}"; else wanted+=("$name"); fi
  done
  for name in "${wanted[@]}"; do
    locate "$name"
    [ -n "${address[$name]:-}" ] || missing+=("$name") answer[$name]=''
  done
  if [ ${#missing[@]} -gt 0 ]; then
    trap 'say "interrupted; what was being started goes on, until tests/run --down stops it"; exit 130' INT
    if [ -n "$docker" ]; then start_containers "${missing[@]}"; else start_privates "${missing[@]}"; fi
    trap - INT
  fi
  for name in "${wanted[@]}"; do report "$name"; done
}

# Tests kill and restart brokers of their own, so their programs must be here, whoever serves the shared ones; so must be
# the clients of the HTTP side.
ensure_programs() {
  local name wanted=()
  for name in rabbitmq nats redis kafka "${programs[@]}"; do
    skipped "$name" || wanted+=("$name")
  done
  [ ${#wanted[@]} -eq 0 ] || install_packages "${wanted[@]}"
  skipped kafka || kafka_own_program
  for name in "${programs[@]}"; do skipped "$name" || "${name}_install"; done
}

# Stops everything that this script started, and nothing else.
down() {
  local name stoppers=() pid failed=''
  for name in "${names[@]}"; do
    stop "$name" &
    stoppers+=($!)
  done
  for pid in "${stoppers[@]}"; do wait "$pid" || failed=yes; done
  if [ -e "$state/docker" ]; then
    "${compose[@]}" down -v >&2 || die "docker compose could not stop its containers"
    rm "$state/docker"
  fi
  rm -rf -- "$state/tansu" "$state"/webhooks-*
  [ -z "$failed" ] || die "something of ours still runs"
  say "nothing of ours runs any more"
}
