# The help of all commands, docs/commands.md, as a section of the manual page. Usage: sed -nf
1i\
[COMMANDS]
/^## `trainyard run`$/,$ {
  s/\\/\\e/g
  s/-/\\-/g
  s/^[.']/\\\&&/
  s/^## `trainyard \(.*\)`$/.SS \1/p
  /^```text$/,/^```$/ {
    s/^```text$/.EX/
    s/^```$/.EE/
    p
  }
}
