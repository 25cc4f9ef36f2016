#include "workers/machine_words.h"

#include <gtest/gtest.h>

namespace trainyard::workers {
namespace {

MachineEntry some_machine() {
  return {.id = 0xFFFFFFFFFFFFFFFF,
          .host = "one",
          .nodes = {{.node = 4, .roles = {"learner"}}, {.node = 65'535}}};
}

TEST(MachineWord, IsReadAsItWasWritten) {
  for (const MachineWord& word :
       {MachineWord(CameWord{.machine = some_machine(), .awaited = 3}), MachineWord(LeaveWord{}),
        MachineWord(LeaveWord{.why = "no \"server\""}),
        MachineWord(NeedWord{.node = 2, .name = "metrics.*", .wanted = false}),
        MachineWord(LastWord{.of = 0xFFFFFFFFFFFFFFFF, .node = 2, .name = "weights"}),
        MachineWord(MarkWord{.mark = 12}), MachineWord(OnlyWord{.node = 0}),
        MachineWord(OnlyWord{.node = 3, .name = "metrics.*"}),
        MachineWord(AckRequestWord{.node = 3, .number = 1}),
        MachineWord(AckWord{.node = 3, .number = 0xFFFFFFFFFFFFFFFF})}) {
    EXPECT_EQ(read_machine_word(to_fields(word)).value(), word);
  }
}

TEST(MachineHello, IsReadAsItWasWritten) {
  const MachineHello hello{.machine = some_machine(),
                           .topology = "star",
                           .when_full = "drop oldest",
                           .begins = true,
                           .has_begun = true};
  EXPECT_EQ(read_machine_hello(to_fields(hello)).value(), hello);
}

TEST(MachineWelcome, IsReadAsItWasWritten) {
  const MachineWelcome welcome{.machines = {some_machine()}, .index = 2, .count = 4, .awaited = 1};
  EXPECT_EQ(read_machine_welcome(to_fields(welcome)).value(), welcome);
  const MachineWelcome refusal{.error = "no"};
  EXPECT_EQ(read_machine_welcome(to_fields(refusal)).value(), refusal);
}

TEST(MachineEnd, IsReadAsItWasWritten) {
  for (const MachineEnd& end : {MachineEnd{.node = 65'535, .why = "boom \"\n"},
                                MachineEnd{.why = "the run is stopped", .leaves = true}}) {
    EXPECT_EQ(read_machine_end(to_fields(end, 1'000)).value(), end);
  }
  EXPECT_EQ(read_machine_end(R"({"node":65536,"why":""})").error().message,
            "end of a run: 'node' must be a whole number from 0 to 65535");
  EXPECT_EQ(read_machine_end(R"({"node":1})").error().message, "end of a run: 'why' is missing");
}

TEST(MachineEnd, LosesTheEndOfATextThatIsTooLong) {
  // Each character takes six bytes of JSON.
  const std::string why(1'000, '\x01');
  const std::string fields = to_fields(MachineEnd{.node = 3, .why = why}, 500);
  EXPECT_LE(fields.size(), 500U);
  const MachineEnd read = read_machine_end(fields).value();
  EXPECT_EQ(read.node, 3);
  EXPECT_FALSE(read.why.empty());
  EXPECT_TRUE(why.starts_with(read.why));
}

TEST(ReplyNote, IsReadAsItWasWritten) {
  const ReplyNote note{.met = true, .marks = {{7, 1}, {0xFFFFFFFFFFFFFFFF, 2}}};
  EXPECT_EQ(read_reply_note(to_fields(note)).value(), note);
}

TEST(MachineWord, SaysWhichMemberIsWrong) {
  const auto error_of = [](const std::string& fields) {
    const auto read = read_machine_word(fields);
    return read ? "none" : read.error().message;
  };
  EXPECT_EQ(error_of(R"({"word":"mark","mark":-1})"),
            "word of a machine: 'mark' must be a whole number from 0 on");
  EXPECT_EQ(error_of(R"({"word":"only","node":65536})"),
            "word of a machine: 'node' must be a whole number from 0 to 65535");
  EXPECT_EQ(error_of(R"({"word":"need","node":1,"name":"","wanted":true})"),
            "word of a machine: 'name' must be the name of an event");
  EXPECT_EQ(error_of(R"({"word":"came","machine":{"id":0,"host":"","nodes":[]},"awaited":0})"),
            "word of a machine: 'id' must be a number above 0");
  EXPECT_EQ(error_of(R"({"word":"came","machine":7,"awaited":0})"),
            "word of a machine: an object is missing");
  EXPECT_EQ(error_of(R"({"word":"came","awaited":0})"), "word of a machine: 'machine' is missing");
  EXPECT_EQ(error_of(R"({"word":"dance"})"),
            "word of a machine: 'word' must be need, last, mark, only, ack request, ack, came or "
            "leave, not 'dance'");
  EXPECT_NE(error_of("[]"), "none");
}

}  // namespace
}  // namespace trainyard::workers
