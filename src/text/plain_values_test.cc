#include "text/plain_values.h"

#include <array>

#include <gtest/gtest.h>

#include "text/placeholder.h"
#include "text/test_shell.h"

namespace trainyard::text {
namespace {

constexpr std::array<std::string_view, 1> kNameOfValue{"v"};

/// Each runs `touch HIT` in bash if `{v}` has its value.
struct Evaluating {
  std::string_view text;
  std::string_view value = "x[$(touch HIT)]";
};
constexpr std::array<Evaluating, 32> kEvaluating{{
    {"n={v}; echo $((n))"},
    {"n={v}; ((n)); true"},
    {"n={v}; echo $[n]"},
    {"n={v}; let n"},
    {"n={v}; let m=n+1"},
    {"n={v}; \"l\"et n"},
    {"n={v}; le\\\nt n"},
    {"n={v}; $'let' n"},
    {"n={v}; for ((i = n; i < 1; i++)); do :; done"},
    {"n={v}; [[ $n -eq 1 ]]"},
    {"[[ {v} -eq 1 ]]"},
    {"n={v}; x=abc; echo ${x:n}"},
    {"n={v}; x=abc; echo ${x:0:n}"},
    {"n={v}; set -- a; echo ${@:n}"},
    {"n={v}; x[$n]=1"},
    {"n={v}; x[n]=1"},
    {"n={v}; x=(1); echo ${x[n]}"},
    {"n={v}; x=(1); echo ${#x[n]}"},
    {"n={v}; a=(); a+=([$n]=1)"},
    {"n={v}; [ -v \"$n\" ]"},
    {"n={v}; test ! -v \"$n\""},
    {"n={v}; printf -v \"$n\" x"},
    {"n={v}; printf \"-v\" \"$n\" x"},
    {"n={v}; echo ${!n}"},
    {"n={v}; echo ${n@P}", "$(touch HIT)"},
    {"n={v}; read -r \"$n\" <<<x"},
    {"f() { local \"$n=1\"; }; n={v}; f"},
    {"n={v}; declare \"$n=1\""},
    {"n={v}; m=n; declare -i k=m"},
    {"n={v}; x=(1); unset \"$n\""},
    {"n={v}; true & wait -n -p \"$n\""},
    {"n={v}; compgen -W \"$n\""},
}};

TEST(PlainValues, AreNeededWhereBashRunsWhatAVariableSays) {
  const ShellRoom room;
  for (const auto& [text, value] : kEvaluating) {
    const Template::Read read = Template::read(text, {.names = kNameOfValue, .in_shell = true});
    ASSERT_TRUE(read.problems.empty()) << text << ": " << read.problems.front();
    EXPECT_TRUE(evaluating_place(read.text.text()).has_value()) << text;
    EXPECT_FALSE(is_plain(value));
    if (shells().back() != "/bin/bash") continue;
    static_cast<void>(room.run("/bin/bash", read.text.command({std::string(value)})));
    EXPECT_TRUE(room.was_hit()) << "bash does not run it: " << text;
    static_cast<void>(room.run("/bin/bash", read.text.command({"1e-3"})));
    EXPECT_FALSE(room.was_hit()) << text;
  }
}

TEST(PlainValues, AreNotNeededElsewhere) {
  for (const std::string_view text :
       {"train --lr ", "a=(1 2); train \"${a[@]}\" ${#a[@]} ${a[0]}", "[ \"$n\" -eq 1 ] && b",
        "while read -r line; do echo $line; done < $file", "ls run[0-9].txt ${SHA:0:7} ${x:-1}",
        "train & p=$!; wait $p", "python train.py -v $n", "compgen -c py", "awk '{print $1}' f",
        "x=$(a $n)", "for i in 1 2; do train $i; done", "read x <<< \"$y\"",
        "echo $RANDOM ${x:=$y} ${x:?no}", "cat <<E\n$n\nE", "export X=$n",
        "echo ${x#a} ${x%%.*} ${x//a/b} ${#x}"}) {
    const auto place = evaluating_place(text);
    EXPECT_FALSE(place.has_value()) << text << ": " << place->what;
  }
}

TEST(PlainValues, HaveNothingThatBashCouldRun) {
  for (const std::string_view value :
       {"", "1e-3", "0.1", "-1", "a_b", "/data/run-1/x.pt", "a,b:c", "50%", "x=1", "me@host"}) {
    EXPECT_TRUE(is_plain(value)) << value;
  }
  for (const std::string_view value :
       {"a b", "x[1]", "$x", "`id`", "a;b", "(a)", "'a'", "\"", "\\", "a\n", "*", "~", "#", "ä"}) {
    EXPECT_FALSE(is_plain(value)) << value;
  }
}

TEST(PlainValues, MayNotNameAVariable) {
  const auto is_path = [](std::string_view name) { return name == "PATH"; };
  EXPECT_EQ(variable_in("PATH", is_path), "PATH");
  EXPECT_EQ(variable_in("1+PATH", is_path), "PATH");
  EXPECT_EQ(variable_in("a=PATH,b", is_path), "PATH");
  EXPECT_EQ(variable_in("PATHS", is_path), std::nullopt);
  EXPECT_EQ(variable_in("/MY_PATH/1PATH", is_path), std::nullopt);
  EXPECT_EQ(variable_in("", is_path), std::nullopt);
}

}  // namespace
}  // namespace trainyard::text
