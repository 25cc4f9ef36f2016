#include "wire/last_words.h"

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

TEST(LastWords, AreTheLastLineThatSaysSomething) {
  EXPECT_EQ(last_words("starting\nsh: 1: train: not found\n"), "sh: 1: train: not found");
  EXPECT_EQ(last_words("error: no data\n\n=====\n  \n"), "error: no data");
  EXPECT_EQ(last_words("no end of line"), "no end of line");
  EXPECT_EQ(last_words("no data\n::metric loss=0.3\n"), "no data");
  EXPECT_EQ(last_words("::metric loss=0.3\n"), "");
  EXPECT_EQ(last_words(""), "");
  EXPECT_EQ(last_words("\n---\n"), "");
}

TEST(LastWords, OfAnOutputSayThatTheyAreNotTheReason) {
  EXPECT_EQ(last_words_of_output("epoch 2\nepoch 3\n"), "last output: 'epoch 3'");
  EXPECT_EQ(last_words_of_output("::metric loss=0.3\n"), "");
  EXPECT_EQ(last_words_of_output("epoch 3\nTraceback (most recent call last):\n  File \"t.py\"\n"
                                 "KeyError: 'lr'\n"),
            "KeyError: 'lr'");
  EXPECT_EQ(last_words_of_output("trainyard parallel: worker 2 failed: no data\nend\n"),
            "worker 2 failed: no data");
}

TEST(LastWords, AreTheExceptionOfAPythonTraceback) {
  const std::string traceback =
      "Traceback (most recent call last):\n"
      "  File \"train.py\", line 1, in <module>\n"
      "    import torch\n"
      "ModuleNotFoundError: No module named 'torch'\n";
  EXPECT_EQ(last_words(traceback), "ModuleNotFoundError: No module named 'torch'");
  // The lines below, and those on the way out, say less.
  EXPECT_EQ(last_words("Traceback (most recent call last):\n  File \"t.py\"\n"
                       "RuntimeError: CUDA error: device-side assert triggered\n"
                       "Compile with `TORCH_USE_CUDA_DSA` to enable assertions.\n"
                       "warning: 1 leaked semaphore\n"),
            "RuntimeError: CUDA error: device-side assert triggered");
  EXPECT_EQ(last_words(traceback + "\nDuring handling of the above exception, another:\n\n"
                                   "Traceback (most recent call last):\n  File\nKeyError: 'lr'\n"),
            "KeyError: 'lr'");
  EXPECT_EQ(last_words("[rank1]: Traceback (most recent call last):\n[rank1]:   File \"t.py\"\n"
                       "[rank1]: ValueError: bad\nTerminating\n"),
            "ValueError: bad");
  EXPECT_EQ(last_words(traceback + "Exception ignored in: <function Loader.__del__ at 0x7f>\n"
                                   "Traceback (most recent call last):\n  File\n"
                                   "AttributeError: 'NoneType' has no attribute 'shutdown'\n"),
            "ModuleNotFoundError: No module named 'torch'");
  EXPECT_EQ(last_words("  + Exception Group Traceback (most recent call last):\n"
                       "  |   File \"t.py\", line 1, in <module>\n"
                       "  |     raise ExceptionGroup('eg', [ValueError(1), TypeError(2)])\n"
                       "  | ExceptionGroup: eg (2 sub-exceptions)\n"
                       "  +-+---------------- 1 ----------------\n"
                       "    | Traceback (most recent call last):\n"
                       "    |   File \"t.py\"\n    | ValueError: 1\n"
                       "    +---------------- 2 ----------------\n"
                       "    | TypeError: 2\n    +------------------------------------\n"),
            "ExceptionGroup: eg (2 sub-exceptions)");
  // One that was cut off, as the process was killed while it wrote.
  EXPECT_EQ(last_words("Traceback (most recent call last):\n  File \"t.py\"\n"), "File \"t.py\"");
}

TEST(LastWords, CanBeShown) {
  EXPECT_EQ(last_words("10 %\r50 %\rfailed at 50 %\r\n"), "failed at 50 %");
  EXPECT_EQ(last_words("\x1b[1;31mError:\x1b[0m bad\tvalue\x07\n"), "Error: bad value");
  EXPECT_EQ(last_words("no space left\n\x1b[?25h\x1b[0m\n\x1b[31m"), "no space left");
  EXPECT_EQ(last_words("bad \xff byte"), "bad \xef\xbf\xbd byte");
  EXPECT_EQ(without_colours("\x1b[1;31mred\x1b[0m\n\x1b[2Jnext\x1b[31"), "red\nnext");
  EXPECT_EQ(last_words(std::string(1000, 'x')), std::string(300, 'x'));
}

TEST(LastWords, NameTheWorkerThatFailedWhateverTheOthersPrinted) {
  EXPECT_EQ(last_words("trainyard parallel: worker 0 failed, and restarts in 200 ms: exited\n"
                       "[2] Traceback (most recent call last):\n"
                       "[2] ValueError: no such data\n"
                       "[1] Traceback (most recent call last):\n"
                       "[1] WorkerError: worker 2 failed: ValueError: no such data\n"
                       "trainyard parallel: worker 2 failed: ValueError: no such data\n"),
            "worker 2 failed: ValueError: no such data");
  EXPECT_EQ(last_words("trainyard parallel: worker 0 failed, and restarts in 200 ms: exited\n"),
            "trainyard parallel: worker 0 failed, and restarts in 200 ms: exited");
  EXPECT_EQ(last_words("[1] trainyard parallel: worker 2 failed: x\nlast\n"), "last");
}

}  // namespace

}  // namespace trainyard::wire
