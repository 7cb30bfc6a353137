# Shared by the other scripts: messages, and properties of the machine.

# Some machines disable Python's bytecode cache; each of many processes would then compile Tidings and Spark again.
unset PYTHONDONTWRITEBYTECODE

say() { printf '%s\n' "$*"; }

stop() { # arguments: problem, command that fixes it
  printf 'set-up stopped: %s\n' "$1" >&2
  if [ $# -gt 1 ]; then printf '  type:  %s\n  then run the same command again.\n' "$2" >&2; fi
  exit 4
}

is_root() { [ "$(id -u)" = 0 ]; }
is_debian() { [ -e /etc/debian_version ] && command -v apt-get >/dev/null; }

apt_install() { # only as root on Debian or Ubuntu
  say "installing $* with apt-get ..."
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

install_line() { # prints the install command for a package: names for apt, dnf, brew
  if command -v brew >/dev/null; then echo "brew install $3"
  elif command -v dnf >/dev/null; then echo "sudo dnf install $2"
  elif is_root; then echo "apt-get install $1"
  else echo "sudo apt-get install $1"; fi
}
