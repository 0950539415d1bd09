# shellcheck shell=bash
# What every service leans on: messages, addresses, and the bytes of protocols.

# The services in the order in which they are named, and what is known of each.
names=()
declare -A title variable standard_port form package container

# Registers a service. Its file also defines
# - NAME_url: prints the address of a server of ours on that port;
# - NAME_ask: prints "version|limit of connections" of the server at an address, or what is wrong with it;
# - NAME_program: prints the program that a private server needs, if it is there;
# - NAME_prepare: fills the folder of a private server (see `start_private`).
service() {
  names+=("$1")
  title[$1]=$2 variable[$1]=$3 standard_port[$1]=$4 form[$1]=$5 package[$1]=$6 container[$1]=$7
}

# Everything but results goes to stderr, so that the output of --services-only can be evaluated.
say() { printf '%s\n' "tests/run: $*" >&2; }

die() {
  say "FAILED: $*"
  exit 1
}

# One start or stop at a time. What an interrupted run was starting keeps the lock until it stands; servers do not.
lock() {
  exec 9>"$state/lock"
  flock -n 9 && return
  say "waiting for another tests/run to have started or stopped its servers"
  flock 9
}

unlock() { exec 9>&-; }

skipped() { [[ ,$IDEM_SKIP, == *",$1,"* ]]; }

# Says what is left out, at the beginning and at the end. An unknown name would leave out less than its author believes.
say_skips() {
  local name
  for name in ${IDEM_SKIP//,/ }; do
    [[ " ${names[*]} ${programs[*]} " == *" $name "* ]] ||
      die "IDEM_SKIP names '$name'; it knows ${names[*]} ${programs[*]}, and pg for postgres"
    say "SKIPPED by IDEM_SKIP: $name"
  done
}

# A password has no place in a log.
masked() { sed -E 's#(://[^:/@]*):[^@/]*@#\1:***@#' <<<"$1"; }

# Undoes percent-encoding.
decoded() { printf '%b' "${1//%/\\x}"; }

# Sets user, password, host, port and database from a URL, for clients that take none.
split_url() {
  local pattern='^[a-z]+://(([^:@/]*)(:([^@/]*))?@)?(\[([^]]+)\]|([^]:/?[]+))(:([0-9]+))?(/([^?]*))?'
  if ! [[ $1 =~ $pattern ]]; then
    echo "this is no URL with a host"
    return 1
  fi
  user=$(decoded "${BASH_REMATCH[2]}")
  password=$(decoded "${BASH_REMATCH[4]}")
  host=${BASH_REMATCH[6]}${BASH_REMATCH[7]}
  port=${BASH_REMATCH[9]}
  database=$(decoded "${BASH_REMATCH[11]}")
}

# Whether anything takes connections there.
# shellcheck disable=SC2016 # expanded by the inner shell, which can be ended when nobody answers
port_open() { timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>/dev/null; }

# Asks a service, in a shell of its own, with which the connection ends.
ask() ("${1}_ask" "$2" 2>&1)

# Opens a connection as descriptor 3. If the other side breaks it, whoever misses the answer says so in better words.
dial() {
  port_open "$1" "$2" || { echo "nothing listens on $1:$2" && return 1; }
  trap '' PIPE
  exec 3<>"/dev/tcp/$1/$2" 2>/dev/null
}

# Bytes are written in hexadecimal, since the strings of bash hold no zeros.
hex() { od -An -v -tx1 | tr -d ' \n'; }
# shellcheck disable=SC2001 # no pattern of bash repeats what it found
unhex() { printf '%b' "$(sed 's/../\\x&/g' <<<"$1")"; }

# Prints so many bytes of the answer; fewer if no more come.
receive() { timeout 5 head -c "$1" <&3 | hex; }

# Reads a line of the answer into `line`, without its end.
receive_line() { IFS= read -r -t 5 line <&3 && line=${line%$'\r'}; }
