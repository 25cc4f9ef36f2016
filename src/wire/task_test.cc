#include "wire/task.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::wire {
namespace {

TEST(TaskReport, IsReadAsItWasWritten) {
  for (const model::Said said : {model::Said::Loading, model::Said::Loaded, model::Said::Trained,
                                 model::Said::OutOfMemory, model::Said::Failed}) {
    const TaskReport word = StageWord{.said = said, .message = "m", .traceback = "t"};
    EXPECT_EQ(read_report(to_fields(word)).value(), word);
  }
  EXPECT_EQ(to_fields(TaskReport{StageWord{.said = model::Said::OutOfMemory, .message = "CUDA"}}),
            R"({"message":"CUDA","say":"out-of-memory"})");
  const TaskReport progress = Progress{.fraction = 0.5, .values = R"({"loss":0.31})"};
  EXPECT_EQ(to_fields(progress), R"({"fraction":0.5,"say":"progress","values":{"loss":0.31}})");
  EXPECT_EQ(read_report(to_fields(progress)).value(), progress);
}

TEST(TaskReport, SaysWhatKeepsItToItsPartOfAGpu) {
  const TaskReport word = StageWord{.said = model::Said::Loaded, .capped_by = "torch 2.4.1"};
  EXPECT_EQ(to_fields(word), R"({"caps":"torch 2.4.1","say":"loaded"})");
  EXPECT_EQ(read_report(to_fields(word)).value(), word);
  const TaskReport read =
      read_report(R"({"say":"loaded","caps":")" + std::string(200, 'x') + R"("})").value();
  EXPECT_EQ(std::get<StageWord>(read).capped_by, std::string(100, 'x'));
  EXPECT_EQ(std::get<StageWord>(read_report(R"({"say":"loaded","caps":7})").value()).capped_by, "");
}

TEST(TaskReport, IsNonsenseWhenNobodyUnderstandsTheWord) {
  EXPECT_EQ(read_report(R"({"say":"dancing"})").value(),
            (TaskReport{StageWord{.said = model::Said::Nonsense,
                                  .message = "it said 'dancing', which nobody understands"}}));
  EXPECT_EQ(
      read_report("{}").value(),
      (TaskReport{StageWord{.said = model::Said::Nonsense, .message = "'say' must be text"}}));
  EXPECT_EQ(
      read_report(R"({"say":7})").value(),
      (TaskReport{StageWord{.said = model::Said::Nonsense, .message = "'say' must be text"}}));
}

TEST(TaskReport, IsAnErrorWhenItsFieldsAreNoObject) {
  EXPECT_EQ(read_report("[1]").error().message, "report: fields must be an object, not array");
  EXPECT_EQ(read_report("{").error().message.substr(0, 15), "report: fields:");
}

TEST(TaskReport, KeepsNoProgressThatMakesNoSense) {
  EXPECT_EQ(read_report(R"({"say":"progress","fraction":1.5,"values":[1]})").value(),
            TaskReport{Progress{}});
  EXPECT_EQ(read_report(R"({"say":"progress","fraction":"half"})").value(), TaskReport{Progress{}});
  EXPECT_EQ(read_report(R"({"say":"progress","fraction":NaN})").value(), TaskReport{Progress{}});
  EXPECT_EQ(read_report(R"({"say":"progress","values":{"a":")" + std::string(4'000, 'x') + R"("}})")
                .value(),
            TaskReport{Progress{}});
  EXPECT_EQ(read_report(R"({"say":"progress","fraction":0})").value(),
            TaskReport{Progress{.fraction = 0.0}});
}

TEST(TaskReport, CarriesAMessageWithAnyJson) {
  const TaskReport sent = Message{.command = "update", .data = R"([1,{"a":null}])"};
  EXPECT_EQ(read_report(to_fields(sent)).value(), sent);
  EXPECT_EQ(read_report(R"({"say":"message"})").value(), (TaskReport{Message{.data = "null"}}));
}

TEST(TaskReport, TurnsNotANumberInProgressIntoNull) {
  EXPECT_EQ(read_report(R"({"say":"progress","values":{"loss":NaN}})").value(),
            TaskReport{Progress{.values = R"({"loss":null})"}});
}

TEST(TaskReport, CarriesTheBeginningOfAMessageAndTheEndOfATraceback) {
  const TaskReport sent = StageWord{.said = model::Said::Failed,
                                    .message = "m" + std::string(5'000, 'x'),
                                    .traceback = std::string(70'000, 'x') + "ValueError"};
  const TaskReport read = read_report(to_fields(sent)).value();
  EXPECT_EQ(read, (TaskReport{StageWord{.said = model::Said::Failed,
                                        .message = "m" + std::string(3'999, 'x'),
                                        .traceback = std::string(63'990, 'x') + "ValueError"}}));
}

TEST(TaskReport, ReplacesBadUtf8) {
  const TaskReport sent = StageWord{.said = model::Said::Failed, .message = "\xFF"};
  EXPECT_EQ(read_report(to_fields(sent)).value(),
            (TaskReport{StageWord{.said = model::Said::Failed, .message = "\uFFFD"}}));
}

TEST(TaskOrder, IsReadAsItWasWritten) {
  const TaskOrder order = TrainOrder{.device = "cuda:1"};
  EXPECT_EQ(to_fields(order), R"({"device":"cuda:1","do":"train"})");
  EXPECT_EQ(read_order(to_fields(order)).value(), order);
}

TEST(TaskOrder, SaysHowMuchOfAGpuItMayTake) {
  const TrainOrder order{.device = "cuda:1", .gpu_memory_max = gb(3)};
  EXPECT_EQ(to_fields(order), R"({"device":"cuda:1","do":"train","gpu_memory_max":3000000000})");
  EXPECT_EQ(read_order(to_fields(order)).value(), TaskOrder(order));
  for (const char* const wrong : {"-1", "\"much\"", "1.5", "null"}) {
    const auto read =
        read_order(fmt::format(R"({{"device":"cpu","do":"train","gpu_memory_max":{}}})", wrong));
    EXPECT_EQ(read.value(), TaskOrder(TrainOrder{.device = "cpu"})) << wrong;
  }
}

TEST(TaskOrder, SaysWhatIsWrong) {
  EXPECT_EQ(read_order("{}").error().message, "order: 'do' is missing");
  EXPECT_EQ(read_order(R"({"do":"rest"})").error().message,
            "order: 'do' must be train, not 'rest'");
  EXPECT_EQ(read_order(R"({"do":"train"})").error().message, "order: 'device' is missing");
  const TrainOrder again{.device = "cpu", .again = true};
  EXPECT_EQ(to_fields(again), R"({"again":true,"device":"cpu","do":"train"})");
  EXPECT_EQ(read_order(to_fields(again)).value(), TaskOrder(again));
}

TEST(Progress, ThatIsSaidInTwoWordsIsTogether) {
  EXPECT_EQ(values_together("", ""), "");
  EXPECT_EQ(values_together(R"({"loss":1})", ""), R"({"loss":1})");
  EXPECT_EQ(values_together("", R"({"acc":2})"), R"({"acc":2})");
  EXPECT_EQ(values_together(R"({"acc":1,"loss":1})", R"({"acc":2})"), R"({"acc":2,"loss":1})");
  const std::string large = R"({"note":")" + std::string(kValuesBytesMax - 11, 'x') + R"("})";
  EXPECT_EQ(values_together(R"({"loss":1})", large), large);
}

}  // namespace
}  // namespace trainyard::wire
