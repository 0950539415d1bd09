# shellcheck shell=bash
# Servers of our own: installed, started and stopped. Each has a folder under target/services, with its data, its log,
# its port and its pid.

# Installs what is missing where nobody has to be asked for a password, else says what to run. Nothing that is installed
# starts by itself, and what would listen on every address does not at the next boot either.
install_packages() {
  local name packages='' titles='' by_hand as_root=(env)
  for name in "$@"; do
    "${name}_program" >/dev/null && continue
    [[ " $packages " == *" ${package[$name]} "* ]] || packages+=" ${package[$name]}"
    titles+=", ${title[$name]}"
  done
  [ -n "$packages" ] || return 0
  by_hand="sudo apt-get update && sudo apt-get install -y$packages"
  command -v apt-get >/dev/null || die "no server here for ${titles#, }, and no apt-get to install it:" \
    "start one and name it (see --help), or use --docker"
  if [ "$EUID" -ne 0 ]; then
    sudo -n true 2>/dev/null || die "no server here for ${titles#, }; run: $by_hand"
    as_root=(sudo -n env)
  fi
  say "installing$packages"
  # shellcheck disable=SC2016,SC2086 # the inner shell's variables; a list of packages
  "${as_root[@]}" sh -euc '
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then
      trap "rm -f $policy" EXIT
      trap "exit 130" HUP INT TERM
      printf "%s\n" "#!/bin/sh" "exit 101" >$policy
      chmod 755 $policy
    fi
    new=
    for unit in rabbitmq-server.service epmd.socket nats-server.service; do
      [ -e /lib/systemd/system/$unit ] || new="$new $unit"
    done
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
    for unit in $new; do
      [ ! -e /lib/systemd/system/$unit ] || ! command -v systemctl >/dev/null || systemctl disable --quiet $unit || true
    done
  ' sh $packages </dev/null >&2 9>&- || die "could not install$packages; by hand: $by_hand"
  for name in "$@"; do
    "${name}_program" >/dev/null || die "${package[$name]} is installed, but brought no ${title[$name]} server"
  done
}

# Makes the folder of a private server, and sets `as_server` to what runs commands there. Root becomes `nobody`, since
# PostgreSQL refuses to run as root. Where `nobody` cannot reach the checkout (a clone under /root), the folder lies in
# /tmp, and target/services links it. The commands have a session of their own, so that Ctrl-C ends the tests and not
# the server, and none of the caller's variables, from which some servers take every setting.
make_home() {
  local link=$state/$1 become=()
  mkdir "$link"
  home=$(readlink -f "$link")
  if [ "$EUID" -eq 0 ]; then
    become=(setpriv --reuid=nobody "--regid=$(id -g nobody)" --clear-groups)
    chown nobody "$home"
    if ! "${become[@]}" test -w "$home"; then
      rmdir "$link"
      home=$(mktemp -d "/tmp/idem-$1.XXXXXX")
      chown nobody "$home"
      ln -s "$home" "$link"
    fi
  fi
  mkdir "$home/data"
  [ "$EUID" -ne 0 ] || chown nobody "$home/data"
  as_server=(setsid "${become[@]}" env -i "PATH=$PATH" "HOME=$home/data" LC_ALL=C.UTF-8)
}

# Prints a port from there on that nothing listens on. All lie below those that outgoing connections take.
free_port() {
  local port=$1
  while port_open 127.0.0.1 "$port"; do port=$((port + 1)); done
  echo "$port"
}

# Runs a command as a server. The pid is written first, and each command replaces the one before it, so that no server
# runs that --down does not know.
serve() {
  local pid_file=$1
  shift
  (
    echo "$BASHPID" >"$home/$pid_file"
    cd "$home" || exit
    exec "${as_server[@]}" "$@"
  ) >>"$home/log" 2>&1 </dev/null 9>&- &
}

# Starts a server of our own. NAME_prepare sets `server` to the command that serves, and may serve a helper itself. The
# data is thrown away, so no server waits for the disk; what a test finds after it killed a client is the same.
start_private() {
  local name=$1 home port url deadline as_server=() server=()
  # What is begun is ended, so that nothing half made stands in the way of the next run.
  trap '' INT
  stop "$name"
  make_home "$name"
  port=$(free_port $((10000 + ${standard_port[$name]})))
  url=$("${name}_url" "$port")
  say "starting a private ${title[$name]} on port $port"
  "${name}_prepare" >"$home/log" 2>&1 </dev/null || die "see $home/log: $(tail -n 5 "$home/log")"
  serve pid "${server[@]}"
  echo "$port" >"$home/port"
  # Long, since all start at once, and somebody's build may run beside them.
  deadline=$((SECONDS + 120))
  until ask "$name" "$url" >/dev/null; do
    kill -0 $! 2>/dev/null && [ "$SECONDS" -lt "$deadline" ] ||
      die "the private ${title[$name]} did not start, see $home/log: $(tail -n 5 "$home/log")"
    sleep 0.2
  done
}

# Whether the process of a pid file runs. A pid may belong to something else by now, so it must also name our folder.
running() {
  local home pid
  home=$(readlink -f "$state/$1") && pid=$(cat "$home/$2" 2>/dev/null) &&
    grep -qaF -- "$home/" "/proc/$pid/cmdline" 2>/dev/null
}

# Stops the private server if it runs, then its helper, and deletes the folder.
stop() {
  local name=$1 link=$state/$1 home pid pid_file signal=TERM deadline
  [ -L "$link" ] || [ -e "$link" ] || return 0
  home=$(readlink -f "$link")
  # PostgreSQL's TERM would wait for its clients.
  [ "$name" != postgres ] || signal=INT
  for pid_file in pid helper.pid; do
    running "$name" "$pid_file" || continue
    pid=$(cat "$home/$pid_file")
    kill "-$signal" "$pid" || die "may not stop the private $name (process $pid)"
    deadline=$((SECONDS + 30))
    while running "$name" "$pid_file"; do
      # RabbitMQ does not hear it while it starts, and there is nothing to lose.
      [ "$SECONDS" -lt $((deadline - 20)) ] || kill -KILL "$pid" || true
      [ "$SECONDS" -lt "$deadline" ] || die "the private $name (process $pid) does not stop"
      sleep 0.1
    done
    [ "$pid_file" != pid ] || say "stopped the private $name (process $pid)"
  done
  rm -rf -- "$home" "$link"
}
