# shellcheck shell=bash
# Programs that tests of the HTTP side run: the providers' own libraries for Python and Node.js, and a browser.

programs=(webhooks chromium)
title[webhooks]='Node.js with npm' package[webhooks]='nodejs npm python3-venv'
title[chromium]='Chromium' package[chromium]='chromium'

webhooks_program() { command -v node && command -v npm && python_program; }

chromium_program() { command -v chromium || command -v chromium-browser || command -v google-chrome; }

# Installs what tests/services/webhooks.txt and tests/services/webhooks/package-lock.json pin by version and hash. The
# folder's name changes with them.
webhooks_install() {
  local pins home
  pins=$(cat "$root/tests/services/webhooks.txt" "$root/tests/services/webhooks/package-lock.json" | cksum)
  home=$state/webhooks-${pins%% *}
  if [ ! -e "$home/complete" ]; then
    rm -rf -- "$state"/webhooks-* && mkdir -p "$home/node"
    cp "$root"/tests/services/webhooks/*.json "$home/node/"
    {
      install_wheels webhooks &&
        npm ci --prefix "$home/node" --ignore-scripts --no-audit --no-fund --no-progress &&
        touch "$home/complete"
    } >"$home/log" 2>&1 </dev/null || die "see $home/log: $(tail -n 5 "$home/log")"
  fi
  export IDEM_TEST_WEBHOOKS=$home
}

chromium_install() {
  IDEM_TEST_CHROMIUM=$(chromium_program) && export IDEM_TEST_CHROMIUM
}
