// The words of a command that are read once more, so that no value is allowed in them.
#include <array>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "text/placeholder.h"

namespace trainyard::text {
namespace {

constexpr std::array<std::string_view, 1> kOnlyLr{"lr"};

/// The mistake that the first placeholder is; empty when all are fine.
std::string mistake_in(std::string_view command) {
  const Template::Read read = Template::read(command, {.names = kOnlyLr, .in_shell = true});
  return read.problems.empty() ? "" : read.problems.front();
}

TEST(SecondReader, IsAShellThatIsGivenACommandAsText) {
  for (const std::string_view command : {"sh -c 'train {lr}'",
                                         "sh -c \"train {lr}\"",
                                         "sh -c {lr}",
                                         "bash -ec 'x {lr}'",
                                         "sh -c train' '{lr}",
                                         "/usr/bin/bash -o pipefail -c 'x {lr}'",
                                         "A=1 nohup sh -c 'x {lr}'",
                                         "bash --norc -c 'x {lr}'",
                                         "find . -exec sh -c 'x {lr}' \\;",
                                         "docker run img bash -lc 'x {lr}'",
                                         "\"sh\" -c \"{lr}\"",
                                         "sh -c \"$(echo {lr})\"",
                                         "if true; then sh -c '{lr}'; fi",
                                         "sh >log -c 'x {lr}'",
                                         "sh 2> log -c 'x {lr}'",
                                         "s\\h -c 'x {lr}'",
                                         "sh -c 'x' sh 1; sh -c '{lr}'",
                                         "exec bash -c 'x {lr}'",
                                         "sh -c $(true) {lr}",
                                         "sh -c $PROGRAM {lr}",
                                         "sh -c `true` {lr}",
                                         "sh -c ${X} >log {lr}",
                                         "dash -c 'x '\"{lr}\""}) {
    EXPECT_EQ(mistake_in(command),
              "'{lr}' cannot be used in the text that 'sh -c' reads as a command; pass it as an "
              "argument: sh -c '... \"$1\"' sh {lr}")
        << command;
  }
  for (const std::string_view command :
       {"sh -c 'x \"$1\"' sh {lr}", "sh train.sh -c {lr}", "bash -o {lr} x", "sh -c 'x' >{lr}",
        "sh -c 'x' > {lr}/log", "sh train.sh {lr}; echo -c {lr}", "{lr} -c {lr}",
        "python train.py -c {lr}", "sh -c 'x'; echo {lr}", "sh -c 'x' 2>&1 | tee {lr}",
        "./sh.py -c {lr}", "sh -c 'x \"$@\"' -- sh {lr}", "sh -c \"$PROGRAM\" {lr}",
        "sh -c $PROGRAM sh {lr}", "sh -c ''$PROGRAM'' {lr}"}) {
    EXPECT_EQ(mistake_in(command), "") << command;
  }
}

TEST(SecondReader, IsAnInterpreterThatIsGivenItsProgramAsText) {
  for (const std::string_view command :
       {"python -c 'print({lr})'", "python3.12 -uc \"print({lr})\"",
        "/opt/venv/bin/python -W error -c '{lr}'", "python3 -c'print({lr})'",
        "CUDA_VISIBLE_DEVICES=0 python -c 'x({lr})'", "time pypy3 -c '{lr}'"}) {
    EXPECT_EQ(mistake_in(command),
              "'{lr}' cannot be used in the text that 'python -c' reads as a program; pass it as "
              "an argument: python3 -c '... sys.argv[1]' {lr}")
        << command;
  }
  for (const std::string_view command : {"perl -ne 'print {lr}' f", "node -e \"{lr}\"",
                                         "node --eval {lr}", "node -pe {lr}", "ruby -e'{lr}'"}) {
    EXPECT_EQ(mistake_in(command),
              "'{lr}' cannot be used in a text that is read as a program; pass it as an argument "
              "after that text")
        << command;
  }
  for (const std::string_view command :
       {"python -c 'import sys' {lr}", "python -m fit -c {lr}", "python -u fit.py -c {lr} -e {lr}",
        "python -W {lr} fit.py", "perl -I {lr} x.pl -e {lr}", "python fit.py --cfg=-c {lr}",
        "torchrun -e {lr} -c {lr}"}) {
    EXPECT_EQ(mistake_in(command), "") << command;
  }
}

TEST(SecondReader, IsAwkAndSuAndSsh) {
  for (const std::string_view command : {"awk '$1 > {lr}' f", "awk -F: \"{lr}\"", "gawk -e '{lr}'",
                                         "x | awk {lr}", "awk $OPTIONS {lr}"}) {
    EXPECT_EQ(mistake_in(command),
              "'{lr}' cannot be used in the text that awk reads as a program; pass it as a "
              "variable: V={lr} awk '... ENVIRON[\"V\"]'")
        << command;
  }
  for (const std::string_view command :
       {"su -c 'x {lr}'", "su bob -c \"{lr}\"", "su --command='{lr}' bob", "sudo su - bob -c {lr}",
        "su bob -c 'x \"$1\"' sh {lr}", "runuser bob {lr}", "su bob --session-command='{lr}'"}) {
    EXPECT_EQ(mistake_in(command),
              "'{lr}' cannot be used in what 'su -c' reads as a command, or may read as an option; "
              "pass it after '--': su -c '... \"$1\"' -- USER sh {lr}")
        << command;
  }
  for (const std::string_view command : {"ssh host train {lr}", "ssh -p 22 -o A=b host 'x {lr}'",
                                         "timeout 5 ssh host \"{lr}\"", "ssh host x >log {lr}"}) {
    EXPECT_EQ(mistake_in(command),
              "'{lr}' cannot be used in what 'ssh' has a shell on the other machine read; send it: "
              "printf "
              "'%s\\n' {lr} | ssh "
              "HOST 'read -r v; ... \"$v\"'")
        << command;
  }
  for (const std::string_view command :
       {"awk '{print $1}' {lr}", "awk -v x={lr} 'x'", "awk -f prog {lr}",
        "su -c 'x \"$1\"' -- bob sh {lr}", "su bob -c 'x' > {lr}", "ssh {lr} train",
        "ssh -i {lr} host x", "ssh host x > {lr}/log", "ssh host x >\"{lr}\"",
        "rsync -ave ssh {lr} host:{lr}", "V={lr} awk '{print ENVIRON[\"V\"]}'",
        "printf '%s\\n' {lr} | ssh host 'read -r v'", "echo awk {lr}"}) {
    EXPECT_EQ(mistake_in(command), "") << command;
  }
}

TEST(SecondReader, IsKnownInAllThatHasAWayToSayAProgram) {
  for (const std::string_view command :
       {"fish -c {lr}", "tcsh -c \"x {lr}\"", "php -r {lr}", "node --print={lr}", "expect -c {lr}",
        "busybox awk {lr}", "{{fd}>/dev/null sh -c {lr}", "{{fd}>/dev/null eval {lr}",
        "$\"eval\" {lr}", "$\"sh\" -c \"x {lr}\""}) {
    EXPECT_NE(mistake_in(command), "") << command;
  }
  EXPECT_EQ(mistake_in("{{fd}>log train {lr}"), "");
}

TEST(SecondReader, IsKnownBehindASubstitution) {
  for (const std::string_view command :
       {"eval t$(show {lr})rue", "eval $(show {lr})", "eval $(true) {lr}", "eval a$(true) {lr}",
        "sh -c $(show {lr})", "eval x=(a) {lr}", "eval <(true) {lr}", "ssh $(host) train {lr}",
        "ssh h $(x (y) {lr})"}) {
    EXPECT_NE(mistake_in(command), "") << command;
  }
  for (const std::string_view command :
       {"train $(show {lr}) {lr}", "eval true; train $(x) {lr}", "x=$(eval true) train {lr}",
        "$(which python3) train.py {lr}", "for i in $(seq {lr}); do train {lr}; done"}) {
    EXPECT_EQ(mistake_in(command), "") << command;
  }
}

TEST(SecondReader, OfADocumentIsUnknownWhereItsLineEndsWithAPipe) {
  for (const std::string_view command :
       {"cat <<EOF |\n{lr}\nEOF\nsh", "cat <<EOF | \n{lr}\nEOF\nx",
        "cat <<EOF | tee log |&\n{lr}\nEOF\nsh", "cat <<EOF | # x\n{lr}\nEOF\nsh",
        "cat <<EOF | (\n{lr}\nEOF\nsh )", "cat <<EOF | {\n{lr}\nEOF\nsh; }",
        "cat <<EOF | ( cd /tmp\n{lr}\nEOF\nsh )", "cat <<EOF | if true\n{lr}\nEOF\nthen sh; fi"}) {
    EXPECT_EQ(mistake_in(command),
              "'{lr}' cannot be used in a here-document whose reader is on a later line; write the "
              "reader on the line with <<EOF: cat <<EOF | train")
        << command;
  }
  for (const std::string_view command :
       {"cat x |\nsort <<EOF\n{lr}\nEOF", "ls | while read x; do cat <<EOF\n{lr}\nEOF\ndone",
        "cat > f <<EOF || exit\n{lr}\nEOF", "(cat <<EOF\n{lr}\nEOF\n) | train",
        "{ cat <<EOF\n{lr}\nEOF\n} | tee x; sh y", "{ cat <<EOF\n{lr}\nEOF\n} > x\nsh x",
        "cat > f <<EOF\n{lr}\nEOF\ntrue || sh", "cat <<EOF | tee f; (\n{lr}\nEOF\ntrain)"}) {
    EXPECT_EQ(mistake_in(command), "") << command;
  }
}

TEST(SecondReader, ReadsItsInputWhereItIsGivenNoProgram) {
  for (const std::string_view command : {"sh <<EOF\nx {lr}\nEOF",
                                         "python3 - <<EOF\n{lr}\nEOF",
                                         "python3 <<'EOF'\n{lr}\nEOF",
                                         "ssh host <<EOF\n{lr}\nEOF",
                                         "bash -s <<-EOF\n{lr}\nEOF",
                                         "sh<<EOF\n{lr}\nEOF",
                                         "sudo bash <<EOF\n{lr}\nEOF",
                                         "bash <<< \"x {lr}\"",
                                         "ssh host bash <<EOF\n{lr}\nEOF",
                                         "su bob <<EOF\n{lr}\nEOF",
                                         "sh >log <<EOF\n{lr}\nEOF",
                                         "cat <<EOF | sh\n{lr}\nEOF",
                                         "<<EOF sh\n{lr}\nEOF",
                                         "cat <<EOF | tee log | ssh host\n{lr}\nEOF",
                                         "{ sh; } <<EOF\n{lr}\nEOF",
                                         "{ cat <<EOF\n{lr}\nEOF\n} | bash",
                                         "{ cat <<EOF\n{lr}\nEOF\n} | tee x | sh -s",
                                         "( echo set -e\ncat <<EOF\n{lr}\nEOF\n) | ssh host sh",
                                         "for i in 1; do cat <<EOF\n{lr}\nEOF\ndone |\nsh",
                                         "if true; then cat <<EOF\n{lr}\nEOF\nfi >&1 | sh",
                                         "(sh) <<EOF\n{lr}\nEOF",
                                         "( cd x; sh ) <<EOF\n{lr}\nEOF",
                                         "while true; do sh; done <<EOF\n{lr}\nEOF",
                                         "if true; then bash -s; fi <<EOF\n{lr}\nEOF",
                                         "rbash <<EOF\n{lr}\nEOF",
                                         "sh -s a <<EOF\n{lr}\nEOF",
                                         "bash -euxo pipefail -s -- --x {lr} <<EOF\n{lr}\nEOF"}) {
    EXPECT_EQ(mistake_in(command),
              "'{lr}' cannot be used in a text that is read from standard input as a program; pass "
              "it as an argument: sh -s -- {lr} <<'EOF', python3 - {lr} <<'EOF'")
        << command;
  }
  for (const std::string_view command :
       {"cat <<EOF\n{lr}\nEOF", "python3 fit.py <<EOF\n{lr}\nEOF", "sh -c 'cat' <<EOF\n{lr}\nEOF",
        "sh -s {lr} <<'EOF'\nx\nEOF", "python3 - {lr} <<'EOF'\nx\nEOF",
        "awk '{print $1}' <<EOF\n{lr}\nEOF", "cat <<<{lr}", "sh train.sh <<EOF\n{lr}\nEOF",
        "cat <<EOF >conf && python3 fit.py conf\n{lr}\nEOF", "{ cat; } <<EOF\n{lr}\nEOF",
        "while read -r x; do sh x.sh; done <<EOF\n{lr}\nEOF", "cat <<EOF | train\n{lr}\nEOF"}) {
    EXPECT_EQ(mistake_in(command), "") << command;
  }
}

TEST(SecondReader, IsGivenWhatASubstitutionPrints) {
  for (const std::string_view command :
       {"source <(echo {lr})", ". <(echo \"x={lr}\")", "bash <(echo 'x {lr}')",
        "python3 -u <(printf %s {lr})", "source <(a; (b); echo $(echo {lr}))"}) {
    EXPECT_EQ(mistake_in(command),
              "'{lr}' cannot be used in a command that prints what is read as a program; write the "
              "program to a file, with the value as an argument of it")
        << command;
  }
  for (const std::string_view command :
       {"source <(conda shell.bash hook); train {lr}", "diff <(echo {lr}) <(echo b)",
        "python3 fit.py <(echo {lr})", "source <(a; (b)); train {lr}"}) {
    EXPECT_EQ(mistake_in(command), "") << command;
  }
}

TEST(SecondReader, IsWhatRunsACommandManyTimes) {
  for (const std::string_view command :
       {"parallel train {lr} ::: 1 2", "parallel -j 4 'train {lr}' ::: 1",
        "seq 3 | parallel echo {lr}", "watch -n 5 \"ls {lr}\"", "sem -j 2 train {lr}"}) {
    EXPECT_EQ(mistake_in(command),
              "'{lr}' cannot be used in the command that 'parallel' or 'watch' has a shell read; "
              "pass it in a variable: V={lr} parallel 'train \"$V\"' ::: 1 2")
        << command;
  }
  for (const std::string_view command :
       {"parallel train ::: {lr}", "parallel -j {lr} train ::: 1", "echo parallel {lr}",
        "V={lr} parallel 'train \"$V\"' ::: 1", "parallel train <{lr}"}) {
    EXPECT_EQ(mistake_in(command), "") << command;
  }
}

TEST(SecondReader, IsNotSeenWhereItHasAnotherName) {
  // The documentation says so; these are examples.
  for (const std::string_view command :
       {"$SHELL -c 'x {lr}'", "x=eval; $x {lr}", "echo {lr} | sh", "env -S \"sh -c {lr}\""}) {
    EXPECT_EQ(mistake_in(command), "") << command;
  }
}

}  // namespace
}  // namespace trainyard::text
