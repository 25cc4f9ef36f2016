#include "settings/made_up_machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::settings {
namespace {

using ::testing::ElementsAre;

std::vector<MadeUpMachines> machines_in(std::string_view text) {
  return parse_made_up_machines(text).value_or(std::vector<MadeUpMachines>{});
}

std::string why_not(std::string_view text) {
  const auto machines = parse_made_up_machines(text);
  return machines ? "" : machines.error().message;
}

TEST(MadeUpMachines, AreReadAsTheyAreWritten) {
  EXPECT_THAT(machines_in("8x(4x80GB)"),
              ElementsAre(MadeUpMachines{.count = 8, .gpus = {4, gb(80)}}));
  const MadeUpMachines large{
      .count = 8, .gpus = {2, gb(80)}, .cpus = model::cpus(64), .memory = gb(512)};
  EXPECT_THAT(machines_in("8x(2x80GB, 64 CPUs, 512GB)"), ElementsAre(large));
  EXPECT_THAT(machines_in(" 8 x ( 512 GB ,64CPUs, 2 x 80 GB ) "), ElementsAre(large))
      << "in any order, and with any blanks";
  EXPECT_THAT(machines_in("(1 CPU)+2x(64 CPUs, 256GB)"),
              ElementsAre(MadeUpMachines{.count = 1, .cpus = model::cpus(1)},
                          MadeUpMachines{.count = 2, .cpus = model::cpus(64), .memory = gb(256)}));
  EXPECT_THAT(machines_in("1x(1x80GB, 2x24GB)"),
              ElementsAre(MadeUpMachines{.count = 1, .gpus = {gb(80), gb(24), gb(24)}}));
}

TEST(MadeUpMachines, HaveATextThatIsReadAsTheSame) {
  for (const std::string_view text :
       {"8x(4x80GB)", "1x(1x80GB, 2x24GB, 0.5 CPUs, 512GB)", "1x(1 CPU)"}) {
    const std::vector<MadeUpMachines> kinds = machines_in(text);
    ASSERT_EQ(kinds.size(), 1U) << text;
    EXPECT_EQ(to_text(kinds[0]), text);
  }
}

TEST(MadeUpMachines, AreToldWhereTheyAreWrong) {
  EXPECT_EQ(
      why_not("4x80GB"),
      "'4x80GB', character 1: '4x80GB' is not valid; write it as in 8x(4x80GB, 64 CPUs, 512GB)");
  EXPECT_EQ(why_not("8y(4x80GB)"),
            "'8y(4x80GB)', character 1: '8y' is not a number of machines, as 8x is");
  EXPECT_EQ(why_not("0x(4x80GB)"),
            "'0x(4x80GB)', character 1: '0x' is not a number of machines, as 8x is");
  EXPECT_EQ(why_not("8x(4x80GB"),
            "'8x(4x80GB', character 3: a ')' is missing at the end of a machine");
  EXPECT_EQ(
      why_not("8x(4x80GB, 64 CPUs,)"),
      "'8x(4x80GB, 64 CPUs,)', character 20: GPUs (4x80GB), CPUs (64 CPUs) or memory (512GB) is "
      "missing");
  EXPECT_EQ(why_not("2x(four CPUs)"),
            "'2x(four CPUs)', character 4: 'four' is not a number of CPUs, as in 4 or 0.5");
  EXPECT_EQ(why_not("2x(4y80GB)").substr(0, 27), "'2x(4y80GB)', character 4: ");
  EXPECT_EQ(why_not("2x(ax80GB)"),
            "'2x(ax80GB)', character 4: 'ax80GB' is not valid; write it as in 4x80GB");
  EXPECT_EQ(why_not("2x(1x80GB)+2x(4x80gb)").substr(0, 39),
            "'2x(1x80GB)+2x(4x80gb)', character 17: ");
  EXPECT_EQ(why_not("2x(80GB, 512GB)"),
            "'2x(80GB, 512GB)', character 10: its memory is given twice; write a GPU as 1x512GB");
  EXPECT_EQ(why_not("2x(1 CPU, 2 CPUs)"),
            "'2x(1 CPU, 2 CPUs)', character 11: its CPUs are given twice");
  EXPECT_EQ(why_not("1x(1x0)"), "'1x(1x0)', character 6: a GPU must have memory");
  EXPECT_EQ(why_not(""), "'', character 1: a machine is missing: 8x(4x80GB) is one kind");
}

TEST(MadeUpMachines, AreNotMoreThanCanBePlayed) {
  EXPECT_EQ(machines_in("1000x(1 CPU)").size(), 1U);
  EXPECT_EQ(why_not("1001x(1 CPU)"),
            "'1001x(1 CPU)', character 1: '1001x' is not a number of machines, as 8x is");
  EXPECT_EQ(why_not("600x(1 CPU)+600x(1 CPU)"),
            "'600x(1 CPU)+600x(1 CPU)', character 13: at most 1000 machines are allowed in total");
  EXPECT_EQ(why_not("1x(999x1GB, 2x1GB)"),
            "'1x(999x1GB, 2x1GB)', character 13: a machine may have at most 1000 GPUs");
}

}  // namespace
}  // namespace trainyard::settings
