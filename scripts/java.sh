# Spark needs Java 17 or newer: find it, install it as root on Debian, or print the command to install it.

java_command() { # the one that Spark starts
  if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; else echo java; fi
}

java_major() { # prints 17, 21 ...; nothing if no Java runs
  { "$(java_command)" -version 2>&1 || true; } | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

have_java() { [ "$(java_major || true)" -ge 17 ] 2>/dev/null; }

ensure_java() {
  if have_java; then return; fi
  if is_debian && is_root && [ -z "${JAVA_HOME:-}" ]; then
    apt-get update -qq
    apt_install "$(java_package)"
  fi
  if ! have_java; then
    stop "Spark needs Java 17 or newer; $(java_command) is $(java_found)" "$(java_line)"
  fi
}

java_package() { # names differ between releases, and the default of old releases is Java 11
  local package
  for package in openjdk-17-jre-headless openjdk-21-jre-headless; do
    if apt-cache show "$package" >/dev/null 2>&1; then echo "$package"; return; fi
  done
  echo default-jre-headless
}

java_found() {
  local major
  major=$(java_major)
  if [ -n "$major" ]; then echo "version $major"; else echo "not there"; fi
}

java_line() {
  if [ -n "${JAVA_HOME:-}" ]; then echo "unset JAVA_HOME    # or point it at a Java 17 or newer"
  else install_line "$(java_package)" java-17-openjdk-headless openjdk@17; fi
}
