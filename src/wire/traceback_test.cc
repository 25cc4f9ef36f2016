// The traceback of several that a program failed of, and where it begins.
#include "wire/traceback.h"

#include <string>

#include <gtest/gtest.h>

namespace trainyard::wire {
namespace {

std::string traceback_of(const std::string& exception, const std::string& prefix = "") {
  return prefix + "Traceback (most recent call last):\n" + prefix + "  File \"t.py\", line 1\n" +
         prefix + exception + "\n";
}

void expect_last(const std::string& text, const std::string& exception, std::size_t begin) {
  const std::optional<Traceback> found = last_traceback(text);
  ASSERT_TRUE(found) << text;
  EXPECT_EQ(found->exception, exception) << text;
  EXPECT_EQ(found->begin, begin) << text;
}

TEST(Traceback, IsTheLastOne) {
  const std::string before = "epoch 1\n" + traceback_of("ValueError: survived") + "epoch 2\n";
  expect_last(before + traceback_of("KeyError: 'lr'") + "bye\n", "KeyError: 'lr'", before.size());
  expect_last(before + traceback_of("KeyError: 'lr'", "[rank3]: "), "KeyError: 'lr'",
              before.size());
}

TEST(Traceback, BeginsWithTheFirstOfItsChain) {
  const std::string survived = traceback_of("ValueError: survived") + "epoch 2\n";
  const std::string handling =
      "\nDuring handling of the above exception, another exception occurred:\n\n";
  const std::string cause =
      "\nThe above exception was the direct cause of the following exception:\n\n";
  expect_last(
      survived + traceback_of("A") + handling + traceback_of("B") + cause + traceback_of("C"), "C",
      survived.size());
  const std::string rank =
      "[rank0]: \n[rank0]: During handling of the above exception, another exception occurred:\n"
      "[rank0]: \n";
  expect_last(survived + traceback_of("A", "[rank0]: ") + rank + traceback_of("B", "[rank0]: "),
              "B", survived.size());
  // The end of the first one is left.
  expect_last("A: cut off\n" + handling + traceback_of("B"), "B", 0);
}

TEST(Traceback, OfAGroupIsTheGroup) {
  const std::string before = traceback_of("ValueError: survived");
  expect_last(before +
                  "  + Exception Group Traceback (most recent call last):\n"
                  "  |   File \"t.py\", line 1, in <module>\n"
                  "  | ExceptionGroup: eg (1 sub-exception)\n"
                  "  +-+---------------- 1 ----------------\n"
                  "    | Traceback (most recent call last):\n"
                  "    |   File \"t.py\"\n    | ValueError: 1\n"
                  "    +------------------------------------\n",
              "ExceptionGroup: eg (1 sub-exception)", before.size());
}

TEST(Traceback, IsNoneWhereNoExceptionIsSaid) {
  for (const std::string text :
       {"", "no such file\n", "Traceback (most recent call last):",
        "Traceback (most recent call last):\n  File \"t.py\"\n",
        "| Traceback (most recent call last):\n| ValueError\n",
        "Exception ignored in: <f>\nTraceback (most recent call last):\n  File\nKeyError\n"}) {
    EXPECT_FALSE(last_traceback(text)) << text;
  }
}

}  // namespace
}  // namespace trainyard::wire
