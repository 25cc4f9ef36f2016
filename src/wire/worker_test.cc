#include "wire/worker.h"

#include <gtest/gtest.h>

namespace trainyard::wire {
namespace {

TEST(WorkerReport, IsReadAsItWasWritten) {
  for (const WorkerReport& report :
       {WorkerReport(TopicWord{.name = "a \"b\" ::*", .type = "json"}),
        WorkerReport(WantWord{.name = "metrics.*", .wanted = true}),
        WorkerReport(WantWord{.name = "x", .wanted = false}), WorkerReport(SettledWord{}),
        WorkerReport(BeginWord{}), WorkerReport(FinishWord{.outcome = "failed", .why = "boom"}),
        WorkerReport(WaitedWord{.name = "exchange.collector", .ms = 12, .from = 0}),
        WorkerReport(WaitedWord{.name = "go", .ms = 60'000})}) {
    EXPECT_EQ(read_worker_report(to_fields(report)).value(), report);
  }
}

TEST(WorkerRequest, IsReadAsItWasWritten) {
  for (const WorkerRequest& request :
       {WorkerRequest(ReadyRequest{.workers = 4, .within_ms = 100}),
        WorkerRequest(ReadyRequest{.workers = 4, .within_ms = 100, .asked_ms = 0}),
        WorkerRequest(BarrierRequest{.name = "epoch", .roles = {"learner"}, .within_ms = 7}),
        WorkerRequest(BarrierRequest{.name = "b", .within_ms = 7, .asked_ms = 123'456'789}),
        WorkerRequest(StatusRequest{}), WorkerRequest(WithdrawRequest{})}) {
    EXPECT_EQ(read_worker_request(to_fields(request)).value(), request);
  }
}

TEST(WorkerReply, IsReadAsItWasWritten) {
  const WorkerReply reply{.error = "late", .missing = {"worker 2"}, .status = R"({"a":1})"};
  EXPECT_EQ(read_worker_reply(to_fields(reply)).value(), reply);
  EXPECT_EQ(to_fields(WorkerReply{}), "{}");
}

TEST(WorkerOrder, IsReadAsItWasWritten) {
  for (const WorkerOrder& order :
       {WorkerOrder(TopicWord{.name = "n", .type = "buffer"}),
        WorkerOrder(PeerWord{.node = 3,
                             .change = "finished",
                             .outcome = "max steps",
                             .why = "w",
                             .roles = {"learner"}}),
        WorkerOrder(LostWord{.name = "n", .node = 1, .count = 9, .refused = true}),
        WorkerOrder(EndWord{.why = "worker 1 failed"}),
        WorkerOrder(EndWord{.why = "the run is stopped", .stopped = true}),
        WorkerOrder(RollWord{.topology = "star",
                             .hub = 2,
                             .workers = {{.node = 2, .roles = {"learner"}}, {.node = 5}},
                             .awaited = 3})}) {
    EXPECT_EQ(read_worker_order(to_fields(order)).value(), order);
  }
}

TEST(WorkerWord, ThatIsWrongIsNamed) {
  const auto fault = [](const char* fields) { return read_worker_report(fields).error().message; };
  EXPECT_EQ(
      fault(R"({"word":"sing"})"),
      "report: 'word' must be topic, want, want-not, settled, begin, finish or waited, not 'sing'");
  EXPECT_EQ(fault(R"({"word":"want"})"), "report: 'name' must be the name of an event");
  EXPECT_EQ(fault(R"({"word":"want","name":7})"), "report: 'name' must be text");
  EXPECT_EQ(read_worker_request(R"({"word":"ready","workers":-1})").error().message,
            "request: 'workers' must be a whole number from 0 to 65536");
  EXPECT_EQ(fault(R"({"word":"waited","name":"go","ms":-1})"),
            "report: 'ms' must be a whole number from 0 to 31536000000");
  EXPECT_EQ(fault(R"({"word":"waited","name":"go","from":65537})"),
            "report: 'from' must be a whole number from 0 to 65536");
  EXPECT_EQ(fault(R"({"word":"topic","name":"e","type":"weird"})"),
            "report: 'type' must be json, buffer or bundle, not 'weird'");
  EXPECT_EQ(fault(R"({"word":"topic","name":"e"})"),
            "report: 'type' must be json, buffer or bundle, not ''");
  EXPECT_EQ(read_worker_order(R"({"word":"topic","name":"e","type":"weird"})").error().message,
            "order: 'type' must be json, buffer or bundle, not 'weird'");
  for (const char* const nameless : {R"({"word":"barrier"})", R"({"word":"barrier","name":""})"}) {
    EXPECT_EQ(read_worker_request(nameless).error().message,
              "request: 'name' must be the name of a barrier");
  }
  const std::string long_name(kEventNameBytesMax + 1, 'n');
  EXPECT_EQ(fault(to_fields(WorkerReport(WantWord{.name = long_name})).c_str()),
            "report: 'name' must be shorter");
}

TEST(Origin, IsANodeAndItsLife) {
  EXPECT_EQ(node_of(origin_of(65'535, 3)), 65'535);
  EXPECT_NE(origin_of(2, 1), origin_of(2, 2));
  EXPECT_EQ(topic_of(""), 0xcbf29ce484222325ULL);
  EXPECT_NE(topic_of("a"), topic_of("b"));
}

TEST(Shapes, AreReadAsTheyWereWritten) {
  const std::vector<BufferShape> shapes{{.dtype = 11, .shared = true, .shape = {2, 3}},
                                        {.dtype = 0, .shared = false}};
  EXPECT_EQ(read_shapes(shapes_text(shapes)).value(), shapes);
  EXPECT_TRUE(read_shapes("").value().empty());
  EXPECT_EQ(read_shapes(std::string_view("\x01\x02\x00", 3)).error().message,
            "the shapes of an event's buffers are cut short");
  EXPECT_FALSE(read_shapes("\x01\x7f").has_value());
}

}  // namespace
}  // namespace trainyard::wire
