// Commands that are made up from seeds, with nasty values in them, run by real shells: no value is
// ever run, and where one is meant to be a single argument it is.
//
// TRAINYARD_SHELL_CASES=n runs the seeds 0 to n-1 instead of 800, TRAINYARD_SHELL_SEED=k only
// that. A seed that fails is named, and fails the same way every time.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "text/placeholder.h"
#include "text/plain_values.h"
#include "text/test_shell.h"

namespace trainyard::text {
namespace {

constexpr std::array<std::string_view, 1> kOnlyV{"v"};

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }

  template <class Set>
  auto one_of(const Set& set) {
    return set[below(set.size())];
  }

  std::string value() {
    if (below(8) == 0) return std::string(one_of(kPlainValues));
    if (below(3) == 0) return std::string(one_of(kSharp));
    std::string made = one_of(nasty_values());
    for (std::size_t more = below(3); more > 0; --more) {
      made += below(3) == 0 ? std::string(1, static_cast<char>(1 + below(255)))
                            : one_of(nasty_values());
    }
    return made;
  }

  /// A command in which `show` prints its number of arguments and the first.
  struct Case {
    std::string text;
    std::string before;  ///< The text printed around the value each time.
    std::string after;
    std::size_t shown = 0;  ///< The number of times it is printed.
  };

  Case right() {
    Case made{.before = filler(), .after = filler()};
    made.shown = 1 + below(3);
    for (std::size_t i = 0; i < made.shown; ++i) made.text += line(made.before, made.after);
    return made;
  }

  /// A right command with a value in another place, or one that has been cut, joined and mixed with
  /// text that shells trip over.
  std::string broken() {
    std::string text = lines();
    if (below(2) == 0) return fmt::format("{}{}\n{}", text, one_of(kPlaces), lines());
    for (std::size_t changes = 1 + below(6); changes > 0; --changes) {
      const std::size_t at = below(text.size() + 1);
      switch (below(4)) {
        case 0:
          text.erase(at, 1 + below(4));
          break;
        case 1:
          text.insert(at, one_of(kPlaces));
          break;
        default:
          text.insert(at, one_of(kNoise));
          break;
      }
    }
    // A function that calls itself would start processes without end.
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '(' && text.find_first_not_of(" \t\n\\", at + 1) == text.find(')', at + 1)) {
        text.insert(at + 1, "x");
      }
    }
    return text;
  }

 private:
  std::string line(const std::string& left, const std::string& right) {
    return fmt::format(fmt::runtime(one_of(kAround)), argument(left, right)) + "\n";
  }
  std::string lines() {
    std::string text;
    for (std::size_t count = 1 + below(3); count > 0; --count) text += line(filler(), filler());
    return text;
  }

  /// The text around a value, which means the same in all quotes.
  std::string filler() {
    std::string text;
    for (std::size_t length = below(3); length > 0; --length)
      text += one_of(std::string_view("ab/._="));
    return text;
  }

  std::string argument(const std::string& left, const std::string& right) {
    switch (below(4)) {
      case 0:
        return left + "{v}" + right;
      case 1:
        return "\"" + left + "{v}" + right + "\"";
      case 2:
        return "'" + left + "{v}" + right + "'";
      default:
        return left + "\"\"{v}''" + right;
    }
  }

  /// Commands around an argument; braces are doubled for fmt.
  static constexpr std::array<std::string_view, 22> kAround{
      "show {}",
      "show {} # it's",
      "# don't\nshow {}",
      "(show {})",
      "{{ show {}; }}",
      "true && show {}",
      "if true; then show {}; fi",
      "for x in 1; do show {}; done",
      "case x in x) show {};; esac",
      "x=1 show {}",
      "show {} </dev/null",
      "show {}>&1",
      "x={}; show \"$x\"",
      "set -- {}; show \"$@\"",
      "eval true; show {}",
      "cat </dev/null; show {}",
      ": <<'E'\nit's \"\nE\nshow {}",
      ": \"$(echo 'a')\" `echo b`; show {}",
      "echo \"$((1 << 2))\" >/dev/null; show {}",
      "{{ :; }} && show {}",
      "show \\\n{}",
      ": $(printf '%s' \"it's\"); show {}"};
  /// Alone they run something in most of what reads a text once more.
  static constexpr std::array<std::string_view, 4> kSharp{"x[$(touch HIT)]", "$(touch HIT)",
                                                          "touch HIT", ";touch HIT"};
  static constexpr std::array<std::string_view, 6> kPlainValues{"1", "a", "x=1", "-1", "a+b", "i"};
  static constexpr std::array<std::string_view, 46> kPlaces{
      "{v}",
      "\"{v}\"",
      "'{v}'",
      "$(show {v})",
      "\"$(show \"{v}\")\"",
      "`show {v}`",
      "${x:-{v}}",
      "$(({v}))",
      "$[{v}]",
      "x[{v}]=1",
      "[[ {v} -eq 0 ]]",
      "[[ -v {v} ]]",
      "let x={v}",
      "declare -i x={v}",
      "eval {v}",
      "eval \"{v}\"",
      "sh -c 'show {v}'",
      "<<E\n{v}\nE\n",
      "<<'E'\n{v}\nE\n",
      "<<-E\n\t{v}\nE\n",
      ">&{v}",
      "RANDOM={v}",
      "trap '{v}' EXIT",
      "((x={v}))",
      "n={v}; echo $((n))",
      "n={v}; ((n))",
      "n={v}; echo $[n]",
      "n={v}; let n",
      "n={v}; [[ $n -eq 1 ]]",
      "n={v}; [[ -v $n ]]",
      "n={v}; y=ab; echo ${y:n}",
      "n={v}; y[$n]=1",
      "n={v}; y=([$n]=1)",
      "n={v}; echo ${y[n]}",
      "n={v}; [ -v \"$n\" ]",
      "n={v}; printf -v \"$n\" x",
      "n={v}; echo ${!n}",
      "n={v}; echo ${n@P}",
      "n={v}; read \"$n\" <<<x",
      "n={v}; declare \"$n=1\"",
      "n={v}; f() { local \"$n=1\"; }; f",
      "n={v}; declare -n y=n; echo $y",
      "n={v}; unset \"$n\"",
      "n={v}; RANDOM=$n",
      "n={v}; mapfile -C \"$n\" -c 1 <<<x",
      "n={v}; for ((i=n;i<1;i++)); do break; done"};
  static constexpr std::array<std::string_view, 57> kNoise{
      "'",       "\"",    "`",     "\\",    "$",
      "(",       ")",     "{",     "}",     "[",
      "]",       "<",     ">",     ";",     "&",
      "|",       "#",     "\n",    "-",     "=",
      "!",       " ",     "*",     "?",     "~",
      "E",       "x",     "$(",    "$((",   "))",
      "${",      "\\\n",  "<<E",   "<<'E'", "<<\"E\"",
      "<<E\\\n", "\nE\n", "<<<",   "<(",    ">(",
      ")#",      "(#",    "$'",    "$\"",   "case x in ",
      " esac ",  ";;",    "[[ ",   " ]]",   "x=(",
      "@(",      "$[",    "eval ", "let ",  "declare -i x;",
      " #",      "x["};

  std::mt19937_64 random_;
};

struct Cases {
  std::uint64_t first = 0;
  std::uint64_t end = 800;
};

Cases cases() {
  Cases asked;
  if (const char* const count = std::getenv("TRAINYARD_SHELL_CASES"))
    asked.end = std::strtoull(count, nullptr, 10);
  if (const char* const seed = std::getenv("TRAINYARD_SHELL_SEED")) {
    asked.first = std::strtoull(seed, nullptr, 10);
    asked.end = asked.first + 1;
  }
  return asked;
}

TEST(ShellValues, AreOneArgumentWhereOneIsMeantAndNeverRun) {
  const ShellRoom room;
  for (std::uint64_t seed = cases().first; seed < cases().end; seed += 2) {
    Maker maker(seed);
    const Maker::Case made = maker.right();
    const std::string value = maker.value();
    const Template::Read read = Template::read(made.text, {.names = kOnlyV, .in_shell = true});
    ASSERT_TRUE(read.problems.empty())
        << "seed " << seed << ": " << made.text << ": " << read.problems.front();
    std::string expected;
    for (std::size_t i = 0; i < made.shown; ++i) {
      expected += fmt::format("<1:{}{}{}>", made.before, value, made.after);
    }
    for (const std::string& shell : shells()) {
      ASSERT_EQ(room.run(shell, read.text.command({value})), expected)
          << "seed " << seed << ", " << shell << ":\n"
          << made.text;
      ASSERT_FALSE(room.was_hit()) << "seed " << seed << ", " << shell << ":\n" << made.text;
    }
  }
}

TEST(ShellValues, AreNeverRunWhateverTheCommandLooksLike) {
  const ShellRoom room;
  std::size_t ran = 0;
  std::size_t refused = 0;
  for (std::uint64_t seed = cases().first | 1U; seed < cases().end; seed += 2) {
    Maker maker(seed);
    const std::string text = maker.broken();
    const Template::Read read = Template::read(text, {.names = kOnlyV, .in_shell = true});
    if (!read.problems.empty()) {
      ++refused;
      continue;
    }
    const std::string value = maker.value();
    if (evaluating_place(read.text.text()) && !is_plain(value)) {
      ++refused;
      continue;
    }
    ++ran;
    for (const std::string& shell : shells()) {
      static_cast<void>(room.run(shell, read.text.command({value})));
      ASSERT_FALSE(room.was_hit()) << "seed " << seed << ", " << shell << ":\n"
                                   << text << "\nwith " << value;
    }
  }
  if (cases().end - cases().first < 2) return;
  EXPECT_GT(ran, (cases().end - cases().first) / 16);
  EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace trainyard::text
