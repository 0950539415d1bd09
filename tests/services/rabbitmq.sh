# shellcheck shell=bash
# RabbitMQ, from Debian.

service rabbitmq RabbitMQ IDEM_TEST_RABBITMQ_URL 5672 '^amqp://' rabbitmq-server rabbitmq

# The user that every new RabbitMQ has, for clients on the same machine.
rabbitmq_url() { echo "amqp://guest:guest@127.0.0.1:$1/%2f"; }

# A login and the opening of the virtual host, frame by frame; there is no client program.
rabbitmq_ask() {
  local user password host port database login frame version='of unknown version'
  split_url "$1" || return
  dial "$host" "${port:-5672}" || return
  unhex 414d515000000901 >&3
  amqp_receive 000a000a || { echo "this is no AMQP 0-9-1 server" && return 1; }
  # In the table of properties: the length of the name, the name, S, the length of the text, the text.
  if [[ $frame =~ 0776657273696f6e530000(....) ]]; then
    version=${frame#*0776657273696f6e53????????}
    version=$(unhex "${version:0:2*16#${BASH_REMATCH[1]}}")
  fi
  login="$(amqp_text 2 PLAIN)$(amqp_text 8 "\0${user:-guest}\0${password:-guest}")$(amqp_text 2 en_US)"
  amqp_send "000a000b00000000$login"
  # A refused client is cut off.
  amqp_receive 000a001e || { echo "it refuses the login of ${user:-guest}" && return 1; }
  # The limits are accepted, without a heartbeat.
  amqp_send "000a001f${frame:8:12}0000"
  amqp_send "000a0028$(amqp_text 2 "${database:-/}")0000"
  if ! amqp_receive 000a0029; then
    # The reason, between the method with its code and the method at fault.
    if [[ $frame == 000a0032* ]]; then unhex "${frame:14:-8}"; else echo "it does not open ${database:-/}"; fi
    return 1
  fi
  amqp_send 000a003200c80000000000
  echo "$version|"
}

# A text with its length before it, in so many digits.
amqp_text() {
  local text
  text=$(printf '%b' "$2" | hex)
  printf "%0$1x%s" $((${#text} / 2)) "$text"
}

amqp_send() { unhex "010000$(printf %08x $((${#1} / 2)))$1ce" >&3; }

# Reads a method's frame into `frame`, and succeeds if it is the one awaited.
amqp_receive() {
  local head
  frame='' head=$(receive 7)
  # None of those awaited here is long; whatever else answers on that port says no such thing.
  [[ $head =~ ^0100000000.... ]] || return
  frame=$(receive $((16#${head:6} + 1)))
  frame=${frame%ce}
  [[ $frame == "$1"* ]]
}

# Not the program on PATH, which insists on being root or `rabbitmq`.
rabbitmq_program() {
  local program=/usr/lib/rabbitmq/bin/rabbitmq-server
  command -v epmd >/dev/null && [ -x $program ] && echo $program
}

# A node beside the machine's: its own name, ports, cookie (in HOME) and folders, nothing from /etc/rabbitmq. Its name
# service, epmd, is also our own: Erlang would start one, on every address, that outlives the node.
rabbitmq_prepare() {
  local epmd_port node_port
  epmd_port=$(free_port 14369)
  node_port=$(free_port 25673)
  # By a name that says whose it is.
  ln -s "$(command -v epmd)" "$home/data/epmd"
  serve helper.pid "$home/data/epmd" -address 127.0.0.1 -port "$epmd_port"
  until port_open 127.0.0.1 "$epmd_port"; do kill -0 $! && sleep 0.1 || return; done
  # As under systemd, its script becomes the server instead of waiting for it.
  server=(env RUNNING_UNDER_SYSTEMD=true "ERL_EPMD_PORT=$epmd_port" ERL_EPMD_ADDRESS=127.0.0.1
    "ERL_FLAGS=-kernel inet_dist_use_interface {127,0,0,1}" RABBITMQ_NODENAME=idem@localhost
    RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 "RABBITMQ_NODE_PORT=$port" "RABBITMQ_DIST_PORT=$node_port"
    "RABBITMQ_MNESIA_BASE=$home/data/mnesia" "RABBITMQ_LOG_BASE=$home/data/log" RABBITMQ_LOGS=-
    "RABBITMQ_CONF_ENV_FILE=$home/none" "RABBITMQ_CONFIG_FILE=$home/none" "RABBITMQ_CONFIG_FILES=$home/none.d"
    "RABBITMQ_ADVANCED_CONFIG_FILE=$home/none" "RABBITMQ_ENABLED_PLUGINS_FILE=$home/data/plugins"
    "$(rabbitmq_program)")
}
