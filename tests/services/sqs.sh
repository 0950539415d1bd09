# shellcheck shell=bash
# SQS; a private one is ministack, from PyPI.

service sqs SQS IDEM_TEST_SQS_URL 4566 '^http://' python3-venv sqs

sqs_url() { echo "http://127.0.0.1:$1"; }

# The list of queues, and the name of whoever gives it.
sqs_ask() {
  local user password host port database body='{}' line reply
  split_url "$1" || return
  dial "$host" "${port:-80}" || return
  # Signed for the region's sake; no server for tests checks the rest.
  printf '%s\r\n' "POST / HTTP/1.1" "Host: $host:${port:-80}" "Connection: close" "Content-Length: ${#body}" \
    "Content-Type: application/x-amz-json-1.0" "X-Amz-Target: AmazonSQS.ListQueues" \
    "Authorization: AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/sqs/aws4_request" \
    "" >&3
  printf '%s' "$body" >&3
  receive_line && [[ $line == HTTP/* ]] || { echo "this is no HTTP server" && return 1; }
  reply=$(timeout 5 cat <&3 | tr -d '\0')
  [[ $line == *" 200"* ]] && grep -qi '^content-type: *application/x-amz-json' <<<"$reply" ||
    { echo "it does not list queues: $line" && return 1; }
  echo "$(sqs_name)|"
}

# ministack says what it is on a page of its own.
sqs_name() {
  local line='' reply
  exec 3<>"/dev/tcp/$host/${port:-80}"
  printf '%s\r\n' "GET /_ministack/health HTTP/1.1" "Host: $host:${port:-80}" "Connection: close" "" >&3
  reply=$(timeout 5 cat <&3 | tr -d '\0')
  if [[ $reply =~ \"edition\".*\"version\":\ *\"([^\"]+)\" ]]; then
    line="ministack ${BASH_REMATCH[1]}"
  fi
  echo "${line:-of unknown kind}"
}

sqs_program() { python_program; }

# Without the last, it opens a port for MQTT on every address.
sqs_prepare() {
  install_wheels sqs || return
  server=(env BIND_HOST=127.0.0.1 "GATEWAY_PORT=$port" SERVICES=sqs IOT_MTLS_ENABLED=false
    "$home/venv/bin/python" -m ministack)
}
