# Spark needs Java 17 or newer: find it, install it where that is ours to do, or say what to type.

java_command() { # the same one Spark will start
  if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; else echo java; fi
}

java_major() { # 17, 21 ...; nothing where there is no Java that runs
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

java_package() { # the name of it differs between releases, and an old release's default is Java 11
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
