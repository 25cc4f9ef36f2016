#include "wire/parallel_record.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::wire {
namespace {

using ::testing::HasSubstr;

ParallelRecord some_record() {
  return {
      .span_ms = 900,
      .ended = true,
      .workers = {{.node = 0,
                   .roles = {"learner"},
                   .lives = {{.number = 1, .from_ms = 1, .to_ms = 7, .outcome = "lost"},
                             {.number = 2, .from_ms = 9, .came_ms = 12}},
                   .waits = {{.kind = WaitKind::Barrier,
                              .name = "epoch \"1\"",
                              .whom = {1, 2},
                              .from_ms = 10,
                              .to_ms = 40,
                              .waited_ms = 25,
                              .count = 3},
                             {.kind = WaitKind::Event, .name = "go", .from_ms = 50, .to_ms = 60}},
                   .totals = {{.kind = WaitKind::Room, .whom = {2}, .waited_ms = 7, .count = 4},
                              {.kind = WaitKind::Ready, .whom = {1}, .waited_ms = 9, .count = 1}},
                   .lives_left_out = 5,
                   .waited_beside_ms = 6},
                  {.node = 1}}};
}

TEST(ParallelRecord, IsReadAsItWasWritten) {
  EXPECT_EQ(read_parallel_record(to_text(some_record())).value(), some_record());
  EXPECT_EQ(read_parallel_record(to_text(ParallelRecord{})).value(), ParallelRecord{});
}

TEST(ParallelRecord, OfAsManyAsCanBeIsRead) {
  ParallelRecord record;
  for (int node = 0; node < 16; ++node) {
    record.workers.push_back({.node = node});
    for (std::size_t i = 0; i < kRecordWaitsMax; ++i) {
      record.workers.back().waits.push_back({.name = "exchange.collector", .whom = {1, 2, 3}});
    }
  }
  EXPECT_EQ(read_parallel_record(to_text(record)).value(), record);
}

TEST(ParallelRecord, ThatIsWrongIsAnErrorThatNamesTheMember) {
  const auto fault = [](const std::string& text) {
    const auto read = read_parallel_record(text);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(fault("{}"), "record: 'format' must be 1");
  EXPECT_THAT(fault("[]"), HasSubstr("fields must be an object"));
  EXPECT_NE(fault("{\"format\":1"), "");
  const auto of_worker = [&](const std::string& members) {
    return fault(R"({"format":1,"workers":[{)" + members + "}]}");
  };
  EXPECT_EQ(fault(R"({"format":1,"workers":[7]})"), "record: an object is missing");
  EXPECT_EQ(fault(R"({"format":1,"workers":{}})"),
            "record: 'workers' must be a list of at most 1024");
  EXPECT_EQ(of_worker(R"("node":-1)"), "record: 'node' must be a whole number from 0 to 65535");
  EXPECT_EQ(of_worker(R"("node":1e99)"), "record: 'node' must be a whole number from 0 to 65535");
  EXPECT_EQ(of_worker(R"("roles":[1])"), "record: 'roles' must be short texts");
  EXPECT_EQ(of_worker(R"("lives":[{"from_ms":9,"to_ms":3}])"),
            "record: 'to_ms' must be after 'from_ms'");
  EXPECT_EQ(of_worker(R"("waits":[{"for":"sleep"}])"),
            "record: 'for' must be barrier, ready, room or event");
  EXPECT_EQ(of_worker(R"("waits":[{"for":"room","whom":["x"]}])"),
            "record: 'whom' must be numbers of workers");
  EXPECT_EQ(of_worker(R"("totals":[{"for":"room","waited_ms":99999999999999}])"),
            "record: 'waited_ms' must be a whole number from 0 to 315360000000");
}

TEST(ParallelRecord, WithMoreThanCanBeIsAnErrorAndNotReadOn) {
  std::string waits;
  for (std::size_t i = 0; i <= kRecordWaitsMax; ++i) {
    waits += fmt::format("{}{{\"for\":\"room\"}}", waits.empty() ? "" : ",");
  }
  EXPECT_EQ(
      read_parallel_record(fmt::format(R"({{"format":1,"workers":[{{"waits":[{}]}}]}})", waits))
          .error()
          .message,
      "record: 'waits' must be a list of at most 4096");
  EXPECT_EQ(read_parallel_record(std::string(kRecordBytesMax + 1, ' ')).error().message,
            "it is larger than 16 MiB");
}

}  // namespace
}  // namespace trainyard::wire
