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
    apt_install default-jre-headless
    if have_java; then return; fi
    apt_install openjdk-17-jre-headless
  fi
  if ! have_java; then
    stop "Spark needs Java 17 or newer; $(java_command) is $(java_found)" "$(java_line)"
  fi
}

java_found() {
  local major
  major=$(java_major)
  if [ -n "$major" ]; then echo "version $major"; else echo "not there"; fi
}

java_line() {
  if [ -n "${JAVA_HOME:-}" ]; then echo "unset JAVA_HOME    # or point it at a Java 17 or newer"
  else install_line openjdk-17-jre-headless java-17-openjdk-headless openjdk@17; fi
}
