#include "text/shell_reader.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/Assertions.h>
#include <rapidcheck/Check.h>
#include <rapidcheck/gen/Container.h>
#include <rapidcheck/gen/Select.h>

#include "sys/stoppable_command.h"
#include "text/placeholder.h"

namespace trainyard::text {
namespace {

constexpr std::array<std::string_view, 1> kOneName{"v"};

/// The place of the first placeholder that is refused, in the words of the mistake; empty when all
/// are fine.
std::string refused(std::string_view command) {
  const Template::Read read = Template::read(command, {.names = kOneName, .in_shell = true});
  if (read.problems.empty()) return "";
  const std::string& problem = read.problems.front();
  const std::string_view before = "'{v}' cannot be used ";
  return problem.substr(before.size(), problem.find(';') - before.size());
}

TEST(ShellReader, RefusesValuesWithinBraces) {
  for (const std::string_view command :
       {"echo ${U:-{v}}", "echo \"${U:-{v}}\"", "echo ${U:-'{v}'}", "echo ${U:-\"{v}\"}",
        "echo \"${V#{v}}\"", "echo ${{v}}", "echo \"$(echo ${U:-{v}})\""}) {
    EXPECT_EQ(refused(command), "within '${...}'") << command;
  }
  EXPECT_EQ(refused("echo ${U} \"${U}\" {v} \"{v}\" ${U:-$(echo {v})}"), "");
}

TEST(ShellReader, RefusesWhatIsReadAsAFormula) {
  for (const std::string_view command :
       {"echo $(( {v} + 1 ))", "echo \"$(({v}))\"", "echo $(((1) + {v}))", "((x = {v}))",
        "for ((i = 0; i < {v}; i++)); do :; done", "echo $((1 << {v}))",
        "echo $(( $(wc -l < {v}) + 1 ))"}) {
    EXPECT_EQ(refused(command), "in arithmetic, which would read its value as a formula")
        << command;
  }
  EXPECT_EQ(refused("echo $((1 + (2))) {v} $((x << 2)) {v}"), "");
}

TEST(ShellReader, RefusesWhatItCannotFollow) {
  EXPECT_EQ(refused("echo \"${U:-\"{v}\"}\""), "after a quote within \"${...}\"");
  EXPECT_EQ(refused("echo \"${U:-it's}\" {v}"), "after a quote within \"${...}\"");
  for (const std::string_view command :
       {"echo `echo {v}`", "echo `echo '{v}'`", "x=\"`echo \\\"{v}\\\"`\"",
        "echo `echo \\`echo {v}\\``", "echo `cat <<E\n{v}\nE\n`", "x=`eval {v}`"}) {
    EXPECT_EQ(refused(command), "in backticks") << command;
  }
  for (const std::string_view command :
       {"echo $(case x in x) echo {v};; esac)", "echo \"$(case x in (x) :;; esac)\" {v}"}) {
    EXPECT_EQ(refused(command), "after a 'case' in '$(...)'") << command;
  }
  for (const std::string_view command : {"echo $'a\\'' {v}", "echo $[{v} + 1]", "echo \"$[1]{v}\"",
                                         "echo $(( '1' )) {v}", "echo \"$$(x\" {v}"}) {
    EXPECT_EQ(refused(command).substr(0, 36), "after what shells do not agree about") << command;
  }
}

TEST(ShellReader, GoesOnAfterBackticks) {
  EXPECT_EQ(refused("x=\"`echo \\\"it's\\\"`\"; echo {v} '{v}'"), "");
  EXPECT_EQ(refused("echo `echo '` {v} # '"), "");
}

TEST(ShellReader, RefusesWhatWouldLengthenTheNameOfAVariable) {
  const std::string_view why = "right after the name of a variable, which its value would extend";
  EXPECT_EQ(refused("echo \"$x{v}\""), why);
  EXPECT_EQ(refused("cat <<E\n$x{v}\nE"), why);
  EXPECT_EQ(refused("echo \"$x\\\n{v}\""), why);
  EXPECT_EQ(refused("cat <<E\n$x\\\n{v}\nE"), why);
  EXPECT_EQ(refused("echo \"$\\\n{v}\""), why);
  EXPECT_EQ(refused("echo $\\\n{v}"), why);
  EXPECT_EQ(refused("echo \"$x\\\n/{v} \\$\\\n{v}\" $x\\\n{v}"), "");
  EXPECT_EQ(refused("echo $x{v} \"${x}{v} $x/{v} \\$x{v} $1{v}\" '$x{v}' # $x{v}"), "");
}

TEST(ShellReader, RefusesValuesInTheExpansionsOfAHereDocument) {
  for (const std::string_view command :
       {"cat <<E\n$(echo {v})\nE", "cat <<E\n${U:-{v}}\nE", "cat <<E\n`echo {v}`\nE",
        "cat <<E\n$(echo \")\" {v})\nE", "cat <<E\n$(case x in x) echo {v};; esac)\nE",
        "cat <<E\n$(echo\n{v})\nE"}) {
    EXPECT_EQ(refused(command), "in an expansion in a here-document, or after one") << command;
  }
  EXPECT_EQ(refused("cat <<{v}\n"), "in the word that ends a here-document");
  EXPECT_EQ(refused("cat <<E\n$(date +%F) ${HOME} \\$(x {v}\nE\necho {v}"), "");
  EXPECT_EQ(refused("cat <<'E'\n$(echo x)\n`x`\nE\necho {v}"), "");
}

TEST(ShellReader, RefusesEverythingAfterAHereDocumentWhoseEndIsUnsure) {
  for (const std::string_view command :
       {"cat <<E\na\\\nE\necho {v}", "echo $(cat <<E\na\nE)\n{v}", "cat <<E $(\necho {v})\nE\n"}) {
    EXPECT_EQ(refused(command), "after a here-document of which shells do not agree where it ends")
        << command;
  }
}

TEST(ShellReader, RefusesEverythingAfterAHereDocumentWhoseWordMayGoOn) {
  for (const std::string_view command :
       {"cat <<'EOF'\\\n; echo {v}\nEOF", "cat <<E\\\nOF\n{v}\nEOF", "cat <<\\\nE\n{v}\nE",
        "cat <<\"E\\\nF\"\n{v}\nEF", "cat <<E | \\\nsort\n{v}\nE", "cat <<'E\nF'\n{v}\nF"}) {
    EXPECT_EQ(refused(command), "after a here-document of which shells do not agree where it ends")
        << command;
  }
  EXPECT_EQ(refused("cat \\\n<<E\n{v}\nE\necho \\\n{v}"), "");
}

TEST(ShellReader, RefusesDocumentsInWhichTheShellPutsNoValues) {
  EXPECT_EQ(refused("cat <<-E\n\t{v}\nE"),
            "in a '<<-' document, of whose lines the shell takes the tabs");
  for (const std::string_view command :
       {"cat <<'E'\n{v}\nE", "cat <<\"E\"\n{v}\nE", "cat <<\\E\n{v}\nE", "cat <<E''\n{v}\nE"}) {
    EXPECT_EQ(refused(command),
              "in a here-document whose word is quoted, in which the shell puts no values")
        << command;
  }
  EXPECT_EQ(refused("cat <<-E {v}\n\tx\nE\ncat <<'E' {v}\nx\nE\necho {v}"), "");
}

TEST(ShellReader, RefusesWhatOneShellTakesForACommentAndAnotherDoesNot) {
  const std::string_view why =
      "after ')#' or '(#', of which shells do not agree whether they start a comment";
  for (const std::string_view command :
       {"cat <(x)#{v}", "echo x | tee >(cat)#{v}", "x=(a b)#{v}", "echo @(a)#{v}", "echo @(#{v})",
        "(echo x)# a comment\necho {v}"}) {
    EXPECT_EQ(refused(command), why) << command;
  }
  EXPECT_EQ(refused("(echo x) # {v}\n$(x)#{v} $((1))#{v} {v}#{v}"), "");
}

TEST(ShellReader, RefusesSubscripts) {
  for (const std::string_view command :
       {"x[{v}]=1", "x[1 + {v}]=1", "echo a; x[\"{v}\"]=1", "x=([{v}]=1)", "unset x[{v}]",
        "x[$(echo {v})]=1", "if x[\\\n{v}]=1; then :; fi", "x[y[0]+{v}]=1"}) {
    EXPECT_EQ(refused(command), "in a subscript, which bash would read as a formula") << command;
  }
  EXPECT_EQ(refused("[ {v} = 1 ] && echo x[1] {v} [a-z]{v} \"x[{v}]\""), "");
}

TEST(ShellReader, TakesValuesInTestsWhichArePlainThere) {
  for (const std::string_view command :
       {"[[ {v} -eq 0 ]]", "[[ -v {v} ]]", "if [[ a && (x ||\n{v}) ]]; then :; fi",
        "[[ \"$(echo \"{v}\")\" -eq 0 ]]", "! [[ '{v}' == a ]]", "[[ a ]] && echo {v}"}) {
    EXPECT_EQ(refused(command), "") << command;
  }
}

TEST(ShellReader, RefusesWhatIsReadAgain) {
  for (const std::string_view command :
       {"let x={v}", "let \"x = {v}\"", "if let {v}; then :; fi", "a=1 let {v}", "l\\\net {v}",
        "let \"$(echo {v})\"", "\"let\" {v}"}) {
    EXPECT_EQ(refused(command), "after 'let', which would read its value as a formula") << command;
  }
  for (const std::string_view command :
       {"eval \"echo {v}\"", "eval \"$(cat <<E\n{v}\nE\n)\"", "trap 'rm {v}' EXIT", ">log eval {v}",
        "2>/dev/null eval {v}", "2> log eval {v}", "<in >&2 eval {v}", "eval 2>&1 {v}",
        "eval &>log {v}", "eval >|log {v}", "function f { eval {v}; }", "command -p eval {v}",
        "\\eval {v}", "e\\val {v}", "coproc C { eval {v}; }", ">&- eval {v}"}) {
    EXPECT_EQ(refused(command), "after 'eval' or 'trap', which read its value as a command")
        << command;
  }
  EXPECT_EQ(refused("let x=1; echo {v}\neval true && echo {v} let {v} eval {v}"), "");
  EXPECT_EQ(refused("eval true & echo {v}; eval x >log 2>&1; >eval echo {v}; > eval echo {v}"), "");
}

TEST(ShellReader, RefusesWhatBashReadsTwice) {
  for (const std::string_view command : {"x >&{v}", "x >&\"{v}\"", "x >& {v}", "x >& out-{v}.log",
                                         "x 1>&'{v}'", "x >&a{v}", "x>&{v}", "x>&'{v}'"}) {
    EXPECT_EQ(refused(command), "after '>&', of which bash reads the file's name twice") << command;
  }
  for (const std::string_view command :
       {"RANDOM={v}", "export RANDOM={v}", "readonly \"OPTIND={v}\"", "SECONDS+={v}", "PS4={v}"}) {
    EXPECT_EQ(refused(command), "in a variable of bash that it reads as a formula or as a command")
        << command;
  }
  for (const std::string_view command :
       {"declare -a \"A=({v})\"", "declare -a 'A=({v})'", "local \"A=([k]={v})\""}) {
    EXPECT_EQ(refused(command), "in a list of values within quotes, which bash reads again")
        << command;
  }
  for (const std::string_view command :
       {"for RANDOM in {v}; do :; done", "read RANDOM <<< {v}", "echo $((RANDOM)) {v}"}) {
    EXPECT_EQ(refused(command),
              "after the name of a variable that bash reads as a formula or as a command, such as "
              "RANDOM")
        << command;
  }
  EXPECT_EQ(refused("x={v}; echo $((RANDOM)) \"$x\""), "") << "the cure";
  for (const std::string_view command : {"alias a={v}", "compgen -W {v}"}) {
    EXPECT_NE(refused(command), "") << command;
  }
  EXPECT_EQ(refused("x 2>&1 {v} &>{v} >{v}; MY_RANDOM={v} y $RANDOM {v}; x >&2 {v}"), "");
}

TEST(ShellReader, RefusesWhatIsGivenToVariablesThatAreNumbers) {
  for (const std::string_view command :
       {"declare -i x={v}", "declare -i x; x={v}", "f() { local -xi x; }\nx={v}",
        "typeset -n x=y; echo {v}", "readonly \"-i\" x={v}"}) {
    EXPECT_EQ(refused(command),
              "after 'declare -i' or '-n', which make what a variable is given later a formula")
        << command;
  }
  EXPECT_EQ(refused("declare -a x=({v}); local y={v} -r \"z={v}\"; export X={v}; echo -i {v}"), "");
  for (const std::string_view command :
       {"declare x={v}", "declare \"x={v}\"", "typeset -A x={v}", "declare -a x={v}",
        "f() { local -a x={v}; }", "readonly -a \"x={v}\""}) {
    EXPECT_EQ(refused(command),
              "after 'declare', which in bash may read its value as a list of words")
        << command;
  }
  EXPECT_EQ(refused("x={v}; declare -r x; local -a y; z={v}"), "");
}

TEST(ShellReader, RefusesProgramsThatAShellReadsInOtherWays) {
  for (const std::string_view command :
       {"bash --rcfile f -c 'train {v}'", "bash --init-file f -c 'train {v}'", "node -p '{v}'",
        "flock f -c 'train {v}'", "script -qc 'train {v}' log", ". /dev/stdin <<EOF\nX={v}\nEOF",
        "source /dev/fd/0 <<EOF\nX={v}\nEOF", "sh /dev/stdin <<EOF\ntrain {v}\nEOF"}) {
    EXPECT_NE(refused(command), "") << command;
  }
  EXPECT_EQ(refused(". ./setup.sh {v}; bash --rcfile f run.sh {v}; sh train.sh <<EOF\n{v}\nEOF\n"),
            "");
}

TEST(ShellReader, RefusesNamesOfVariables) {
  for (const std::string_view command :
       {"declare {v}", "local \"{v}=1\"", "unset {v}", "read -r {v}", "printf -v {v} x",
        "test -v {v}", "[ -v \"{v}\" ]", "readarray {v}"}) {
    EXPECT_EQ(refused(command),
              "where the name of a variable belongs, in which bash may run what a value says")
        << command;
  }
  EXPECT_EQ(refused("read x <<<{v}; read y < {v}; printf {v}; grep -v {v}; test -n {v}"), "");
}

ShellTraits traits_of(std::string_view command) {
  ShellReader reader;
  reader.read(command);
  static_cast<void>(reader.at_end());
  return reader.traits();
}

bool changes_parameters(std::string_view command) { return traits_of(command).changes_parameters; }

TEST(ShellReader, SeesPipesAndNoOtherBars) {
  for (const std::string_view command :
       {"a | b", "a|b", "a |& b", "(a | b)", "x=$(a | b)", "echo \"$(a | b)\"", "x=`a | b`",
        "a |\n b", "a |\"b\"", "a |\\\n b", "cat <<E | b\nx\nE", "if a; then b | c; fi"}) {
    EXPECT_TRUE(traits_of(command).has_pipe) << command;
  }
  for (const std::string_view command :
       {"a || b", "a||b", "a >|b", "echo 'a | b' \"a | b\" a\\|b", "[[ a || b ]]", "a # | b",
        "cat <<E\na | b\nE", "a && b & c"}) {
    EXPECT_FALSE(traits_of(command).has_pipe) << command;
  }
}

TEST(ShellReader, SaysThatTheLastCommandRunsInTheBackground) {
  for (const std::string_view command :
       {"train &", "a; train > log 2>&1 &", "nohup train & ", "a && train &\n", "train & # it's",
        "for i in 1 2; do train $i & done", "{ a & }", "(train &)", "a & b &", "train <<E &\nx\nE",
        "if a; then train & fi", "a | train &", "wait; train &", "a & wait; train &",
        "for i in 1 2; do wait -n; a $i & done", "coproc train", "wait; coproc train > log"}) {
    EXPECT_TRUE(traits_of(command).ends_in_background) << command;
  }
  for (const std::string_view command : {"",
                                         "train",
                                         "train &> log",
                                         "train 2>&1",
                                         "train >& log",
                                         "a && b",
                                         "a & b",
                                         "a & wait",
                                         "a & b & wait",
                                         "for i in 1 2; do a $i & done; wait",
                                         "a & p=$!; wait $p",
                                         "x=$(a &)",
                                         "f() { a & wait; }; f",
                                         "echo 'a &'",
                                         "train # &",
                                         "a |& b",
                                         "a & b; c",
                                         "a \\&",
                                         "coproc a; wait",
                                         "coproc a\ncat <&${COPROC[0]}",
                                         "echo coproc a",
                                         "'coproc a'"}) {
    EXPECT_FALSE(traits_of(command).ends_in_background) << command;
  }
}

TEST(ShellReader, SaysThatACommandInTheBackgroundMayBeRunningWhenTheTextEnds) {
  for (const std::string_view command :
       {"train & true", "train & disown", "train & echo started; exit 0", "(train &); b",
        "for i in 1 2; do train $i & done; ls", "a & wait; b & c", "wait; train & b",
        "nohup train > log 2>&1 & echo $! > pid", ". ./env; train & b", "trap a TERM; b & c",
        "f() { train & }; f", "f() { a; }; b & f"}) {
    EXPECT_TRUE(traits_of(command).leaves_background) << command;
  }
  for (const std::string_view command :
       {"train", "train &> log; b", "a && b", "a |& b; c", "train & wait", "train & p=$!; wait $p",
        "server & train; kill $!", "a & b & c; wait -n", "a & builtin wait", "a & (wait)",
        "if a; then b & wait; fi; c", "train > log & tail --pid=$! -f log", "a & . ./wait.sh",
        "a & eval \"$b\"", "f() { wait; }; a & f", "trap 'kill $(jobs -p)' EXIT; a & b",
        "echo 'a & b' a\\&b # & c", "x=$(a & b)"}) {
    EXPECT_FALSE(traits_of(command).leaves_background) << command;
  }
}

TEST(ShellReader, SaysThatWaitHidesTheFailuresOfWhatItWaitsFor) {
  for (const std::string_view command :
       {"train & wait", "train &\nwait", "for i in 1 2; do train $i & done; wait; ls",
        "a & wait $!; b & wait", "a & (wait)", "a & wait > log", "kill $x; a & wait",
        "a & wait; kill $x", "a & wait; wait"}) {
    EXPECT_TRUE(traits_of(command).hides_failures) << command;
  }
  for (const std::string_view command :
       {"train", "wait", "train & true", "train & wait $!", "a & b & wait -n", "a & wait; wait $x",
        "server & train; kill $!; wait", "a & echo wait", "f() { wait $x; }; a & wait; f",
        "trap 'exit $(jobs -p | wc -l)' EXIT; a & wait"}) {
    EXPECT_FALSE(traits_of(command).hides_failures) << command;
  }
}

TEST(ShellReader, SeesTheOperatorsThatOnlyBashHas) {
  for (const std::string_view command :
       {"train &> log", "train &>> log", "train&>log", "a |& b", "(a |& b)", "x=$(a &> log)",
        "echo \"$(a |& b)\"", "a &\\\n> log", "cat <<E &> log\nx\nE", "train {v}&>log"}) {
    EXPECT_TRUE(traits_of(command).has_bash_operator) << command;
  }
  for (const std::string_view command :
       {"train > log 2>&1", "train >& log", "a & > log", "a &&>log", "a || b", "a | b & wait",
        "echo '&>' \"|&\" \\&>log a'&'>log", "a # &> log", "cat <<E\na |& b\nE"}) {
    EXPECT_FALSE(traits_of(command).has_bash_operator) << command;
  }
}

TEST(ShellReader, SaysThatTheStatusOfAPipeThatMayBeCutIsUsed) {
  for (const std::string_view command :
       {"if sort f | head -n 1; then b; fi", "while a | grep -q x; do b; done",
        "a | grep -m 1 x && b", "a | grep -qF x || b", "x=$(sort f | head -1)",
        "echo \"$(a | /usr/bin/head -1)\"", "a | grep --quiet x && b", "a | grep -m1 x | b || c",
        "set -e; sort f | head -1", "set -euo pipefail\nsort f |\n head -1 > x",
        "until ! a | egrep -q x\ndo b; done", "a |& head -1 && b", "set -o errexit; a | head -1",
        "if a; then b; elif c | head -1; then d; fi", "a | head -n {v} && b",
        "for i in 1; do a | head -1; done && b", "{ a | head -1; } || b", "x=`a | head -1` && b",
        "echo `a | grep -q x`; b"}) {
    EXPECT_TRUE(traits_of(command).uses_status_of_cut_pipe) << command;
  }
  for (const std::string_view command :
       {"sort f | head -n 1", "a && sort f | head -1", "head -1 f && b", "a | grep x && b",
        "if a; then b | head -1; fi", "for i in 1; do a | head -1; done", "grep -q x f && b",
        "x=$(head -1 f)", "a | grep -eq x && b", "a | tee head && b", "a | head -1; b && c",
        "if a | tee x; then b; fi; c | head -1", "set -x; a | head -1", "'a | head -1 && b'",
        "{ a | head -1; }", "{ a | head -1; }; b && c", "x=`a | tee y` && b"}) {
    EXPECT_FALSE(traits_of(command).uses_status_of_cut_pipe) << command;
  }
}

TEST(ShellReader, SaysThatTheStatusOfAPipeThatMayBeCutIsInverted) {
  for (const std::string_view command :
       {"! sort f | grep -q x", "a; ! b |\n head -1 | c; d", "! (a; b | head -1)"}) {
    EXPECT_TRUE(traits_of(command).uses_status_of_cut_pipe) << command;
  }
  for (const std::string_view command : {"! a | tee x; b | head -1", "[ ! -e x ]; a | head -1",
                                         "! (a | head -1; b)", "! a\nb | head -1"}) {
    EXPECT_FALSE(traits_of(command).uses_status_of_cut_pipe) << command;
  }
}

TEST(ShellReader, SaysThatBashReportsTheStatusOfAPipeThatMayBeCut) {
  for (const std::string_view command :
       {"(a | head -1)", "(cd d; sort f | head -n 1) > x # the first", "(a | head -1) && b",
        "(a\n b | head -1\n)\n", "( (a | head -1) )", "{ (a | head -1); }",
        "if a; then (b | head -1); fi", "(a | head -1) || b", "a && (b | grep -q x)",
        "(a | head -1) | tee x && b", "f() { a | head -1; }; f", "f() (a | head -1); f",
        "function f {\n if a; then b | head -1; fi\n}\nf", "trap 'rm x' EXIT; a | head -1",
        "a; trap b 0\nc | head -1 | d", "cat <(a) | (b | head -1)", "f() { a; }; (b | head -1)"}) {
    EXPECT_TRUE(traits_of(command).uses_status_of_cut_pipe) << command;
  }
  for (const std::string_view command :
       {"(a | head -1); b", "(a | head -1); x=1", "(a | head -1; b)", "(a | head -1) | tee x",
        "(a | tee x)", "mapfile -t x < <(a | head -1)", "diff <(a | head -1) <(b | head -1) && c",
        "a > >(b | head -1)", "f() { a | head -1; b; }; f",
        "f() { if a; then b | head -1; fi; c; }; f", "f() { a; }; f | head -1",
        "trap 'rm x' EXIT; a | head -1; b", "trap a TERM; b | head -1", "a | head -1; x=(b c)",
        "a | head -1; f() { b; }", "case a in b) c | head -1;; esac",
        "[[ (a || b) ]]; c | head -1"}) {
    EXPECT_FALSE(traits_of(command).uses_status_of_cut_pipe) << command;
  }
}

TEST(ShellReader, TakesAPipeToBeCutBySedWhereItsScriptQuits) {
  for (const std::string_view command :
       {"(a | sed 1q)", "x=$(a | sed 1q)", "a | sed -n '/x/{p;q;}' && b",
        "a | sed -e 5p -e '$!d; 9Q' || b"}) {
    EXPECT_TRUE(traits_of(command).uses_status_of_cut_pipe) << command;
  }
  for (const std::string_view command :
       {"a | sed 1q", "x=$(a | sed '$q')", "a | sed 's/q/x/' && b", "(a | sed -n 1p)"}) {
    EXPECT_FALSE(traits_of(command).uses_status_of_cut_pipe) << command;
  }
}

TEST(ShellReader, SaysThatAWaitReportsTheStatusOfAPipeInTheBackground) {
  for (const std::string_view command :
       {"(a | head -1) & wait $!", "a | head -1 & b; wait \"$!\"", "a | head -1 & wait $! && b",
        "for i in 1 2; do a | head -1 & done; wait -n"}) {
    EXPECT_TRUE(traits_of(command).uses_status_of_cut_pipe) << command;
  }
  for (const std::string_view command : {"(a | head -1) & wait", "a | head -1 & wait $!; b",
                                         "a | tee x & wait $!", "a & wait $!; b | head -1"}) {
    EXPECT_FALSE(traits_of(command).uses_status_of_cut_pipe) << command;
  }
}

TEST(ShellReader, SaysThatAReturnWithoutANumberKeepsTheStatusOfAPipe) {
  for (const std::string_view command :
       {"f() { a | head -1; return; }; f", "f() { a | head -1; return $?; }; f",
        "f() { if a; then b | head -1; return; fi; c; }; f", "(a | head -1; exit)"}) {
    EXPECT_TRUE(traits_of(command).uses_status_of_cut_pipe) << command;
  }
  for (const std::string_view command :
       {"f() { a | head -1; return 0; }; f", "f() { a | head -1; b; return; }; f",
        "(a | head -1; exit 0)", "a | head -1; exit"}) {
    EXPECT_FALSE(traits_of(command).uses_status_of_cut_pipe) << command;
  }
}

TEST(ShellReader, SaysThatNoPipeIsCutWherePipefailIsOff) {
  for (const std::string_view command :
       {"set +o pipefail; a | head -1 && b", "set +o pipefail; (a | head -1)",
        "set -euo pipefail; set +o pipefail; x=$(a | head -1)",
        "set +eo pipefail\nx=\"`a | head -1`\" || b"}) {
    EXPECT_FALSE(traits_of(command).uses_status_of_cut_pipe) << command;
  }
  for (const std::string_view command :
       {"set +o pipefail; a; set -o pipefail; b | head -1 && c",
        "(set +o pipefail); a | head -1 && b", "x=$(set +o pipefail); a | head -1 && b"}) {
    EXPECT_TRUE(traits_of(command).uses_status_of_cut_pipe) << command;
  }
}

TEST(ShellReader, SaysThatParametersAreOthersInAFunction) {
  EXPECT_TRUE(changes_parameters("mean() { cat \"$@\"; }; mean"));
  EXPECT_TRUE(changes_parameters("true\nmean ( ) {\ncat\n}"));
  EXPECT_TRUE(changes_parameters("function mean { cat; }"));
}

TEST(ShellReader, SaysThatParametersAreOthersAfterTheyAreSetOrShifted) {
  EXPECT_TRUE(changes_parameters("set -- a b; cat"));
  EXPECT_TRUE(changes_parameters("set -e -- a"));
  EXPECT_TRUE(changes_parameters("set a b && cat"));
  EXPECT_TRUE(changes_parameters("if true; then shift; fi; cat"));
  EXPECT_TRUE(changes_parameters("set -eo pipefail -- a"));
}

TEST(ShellReader, SaysThatParametersStayInAllOtherCommands) {
  EXPECT_FALSE(changes_parameters(""));
  EXPECT_FALSE(changes_parameters("python mean.py > out.txt"));
  EXPECT_FALSE(changes_parameters("set -euo pipefail; python mean.py"));
  EXPECT_FALSE(changes_parameters("set -x +e\ncat"));
  EXPECT_FALSE(changes_parameters("echo shift set -- function 'f() { x; }' \"g()\""));
  EXPECT_FALSE(changes_parameters("x=$(cat a) && (cat b); for x in a; do cat; done"));
  EXPECT_FALSE(changes_parameters("python -c 'f()' \\; print f"));
  EXPECT_FALSE(changes_parameters("all=(); all+=(a); cat"));
  EXPECT_FALSE(changes_parameters("cat $(  ) \"$( )\""));
}

TEST(ShellReader, TakesAnyText) {
  const bool holds = rc::check("a reader takes any text", [] {
    const auto command = *rc::gen::container<std::string>(
        rc::gen::elementOf(std::string("ab '\"\\$`(){}[]<>;#\n-E")));
    ShellReader reader;
    reader.read(command);
    const auto first = reader.value_here();
    reader.read(command);
    // Once the reader has given up, it stays so.
    if (!first && first.error().where.starts_with("after ")) {
      RC_ASSERT(!reader.value_here().has_value());
    }
  });
  EXPECT_TRUE(holds);
}

using ::testing::ElementsAre;

std::vector<std::string> words_of(std::string_view text) {
  const Template::Read read = Template::read(text, {.in_shell = true});
  return bash_command(read.text.text(), read.text.traits());
}

/// The exit code of the text. Commands exit with 141 themselves: whether SIGPIPE kills one depends
/// on how fast the other end closes.
int status_of(std::string_view text) {
  const auto end = sys::run_stoppable({.arguments = words_of(text), .directory = "/"}, {});
  return end ? end->exit_code : -1;
}

TEST(BashCommand, IsTheTextAloneWithoutAPipe) {
  EXPECT_THAT(words_of("train || exit 3"), ElementsAre("/bin/bash", "-c", "train || exit 3"));
  EXPECT_THAT(words_of("train 'a|b' >|log"), ElementsAre("/bin/bash", "-c", "train 'a|b' >|log"));
}

TEST(BashCommand, UnderstandsBash) {
  EXPECT_EQ(status_of("a=({1..3}); [[ abc == a* ]] && (( a[2] == 3 ))"), 0);
  EXPECT_EQ(status_of("a=(1 2); [[ ${#a[@]} == 2 ]] && cat <(exit 0) &>/dev/null"), 0);
}

TEST(BashCommand, FailsAsAnyCommandOfItsPipelineDoes) {
  EXPECT_EQ(status_of("(exit 3) | true"), 3);
  EXPECT_EQ(status_of("true | (exit 4)"), 4);
  EXPECT_EQ(status_of("true | true"), 0);
  EXPECT_EQ(status_of("(exit 3) | \"cat\""), 3);
  EXPECT_EQ(status_of("(exit 3) |& cat"), 3);
  EXPECT_EQ(status_of("`true | true`; (exit 3) |\n  cat"), 3);
  EXPECT_EQ(status_of("true | true; exit 5"), 5);
}

TEST(BashCommand, SucceedsWhereOnlySigpipeHasEndedACommandBeforeTheLast) {
  for (const std::string_view text :
       {"(exit 141) | true", "(exit 141) | (exit 141) | true", "true; (exit 141) | true | true",
        "IFS=,; (exit 141) | (exit 141) | true", "set -u; (exit 141) | true",
        "for i in 1 2; do (exit 141) | true; done", "true && (exit 141) | true",
        "(exit 141) | true\n# a comment"}) {
    EXPECT_EQ(status_of(text), 0) << text;
  }
  for (const std::string_view text :
       {"true | (exit 141)", "(exit 3) | (exit 141) | true", "true | true; exit 141 | exit 141"}) {
    EXPECT_NE(status_of(text), 0) << text;
  }
}

TEST(BashCommand, FailsWithSigpipeWhereItHasStoppedTheText) {
  EXPECT_EQ(status_of("set -e; (exit 141) | true; true"), 141);
  EXPECT_EQ(status_of("set -euo pipefail\n(exit 141) | true"), 141);
}

TEST(BashCommand, KeepsTheTrapsOfTheText) {
  EXPECT_EQ(status_of("trap 'exit 7' EXIT; true | true"), 7);
}

}  // namespace

}  // namespace trainyard::text
