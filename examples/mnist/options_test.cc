// The command line of mnist_train.
#include "mnist/options.h"

#include <vector>

#include <gtest/gtest.h>

namespace mnist {
namespace {

std::string option_fault(const std::vector<const char*>& arguments) {
  const auto options = parse_options(arguments, {});
  return options ? "none" : options.error();
}

TEST(Options, ReadsEveryOption) {
  const std::vector<const char*> arguments{"--data",   "/d", "--lr",       "3e-3",
                                           "--hidden", "64", "--seed",     "18446744073709551615",
                                           "--epochs", "5",  "--fraction", "0.1"};
  const auto options = parse_options(arguments, {});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(*options, (Options{.data = "/d",
                               .learning_rate = 3e-3,
                               .hidden = 64,
                               .seed = 18446744073709551615U,
                               .epochs = 5,
                               .fraction = 0.1,
                               .help = false}));
}

TEST(Options, KeepsDefaultsThatAreNotMentioned) {
  const std::vector<const char*> arguments{"--seed", "3"};
  const auto options = parse_options(arguments, {.data = "there", .hidden = 9, .fraction = 0.5});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(*options, (Options{.data = "there", .hidden = 9, .seed = 3, .fraction = 0.5}));
}

TEST(Options, SaysWhatIsWrong) {
  EXPECT_EQ(option_fault({"--seed"}), "--seed: a value is missing");
  EXPECT_EQ(option_fault({"--sed", "1"}), "unknown option '--sed'");
  EXPECT_EQ(option_fault({"--seed", "-1"}), "--seed: '-1' is not a whole number");
  EXPECT_EQ(option_fault({"--seed", "1x"}), "--seed: '1x' is not a whole number");
  EXPECT_EQ(option_fault({"--lr", "nan"}), "--lr: 'nan' is not a rate from 1e-9 to 1000");
  EXPECT_EQ(option_fault({"--lr", "0"}), "--lr: '0' is not a rate from 1e-9 to 1000");
  EXPECT_EQ(option_fault({"--hidden", "4097"}), "--hidden: '4097' is not a number from 1 to 4096");
  EXPECT_EQ(option_fault({"--epochs", "0"}), "--epochs: '0' is not a number from 1 to 1000");
  EXPECT_EQ(option_fault({"--fraction", "1.5"}),
            "--fraction: '1.5' is not a share above 0, at most 1");
  EXPECT_EQ(option_fault({"--data", ""}), "--data: '' is not a directory");
}

}  // namespace
}  // namespace mnist
