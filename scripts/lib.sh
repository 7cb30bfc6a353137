# Shared by the scripts beside it: messages, and what machine this is.

# Some machines forbid Python to keep what it compiles; each of many processes would then compile Tidings and Spark anew.
unset PYTHONDONTWRITEBYTECODE

say() { printf '%s\n' "$*"; }

stop() { # what is wrong, then the one line to type
  printf 'set-up stopped: %s\n' "$1" >&2
  if [ $# -gt 1 ]; then printf '  type:  %s\n  then run the same command again.\n' "$2" >&2; fi
  exit 4
}

is_root() { [ "$(id -u)" = 0 ]; }
is_debian() { [ -e /etc/debian_version ] && command -v apt-get >/dev/null; }

apt_install() { # as root on Debian or Ubuntu only
  say "installing $* with apt-get ..."
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

install_line() { # the one line to type for a package: its name for apt, for dnf, for brew
  if command -v brew >/dev/null; then echo "brew install $3"
  elif command -v dnf >/dev/null; then echo "sudo dnf install $2"
  elif is_root; then echo "apt-get install $1"
  else echo "sudo apt-get install $1"; fi
}
