// Runs that a process joins which should not, or does not speak as workers do.
#include <expected>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"
#include "base/time.h"
#include "link/conversation.h"
#include "link/frame_socket.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"
#include "trainyard/parallel.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/worker.h"
#include "workers/place.h"

namespace trainyard::workers {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

/// Shells that say where they are to join, and wait.
std::vector<std::string> shells_in(const std::string& directory) {
  return {"sh", "-c", R"(mkfifo "$0/gate.$$"
printf '%s\n%s\n' "$TRAINYARD_WORKER" "$TRAINYARD_WORKER_TOKEN" > "$0/$$"
mv "$0/$$" "$0/place.$$"
read it < "$0/gate.$$")",
          directory};
}

std::vector<std::string> files_of(const std::string& directory, std::string_view prefix) {
  std::vector<std::string> found;
  for (const auto& each : std::filesystem::directory_iterator(directory)) {
    if (each.path().filename().string().starts_with(prefix)) found.push_back(each.path());
  }
  return found;
}

Place place_in(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::string token;
  std::getline(file, text);
  std::getline(file, token);
  Place place = read_place(text).value();
  place.token = token;
  return place;
}

Result<link::FrameSocket> join(const Place& place, int version = 1) {
  const char* const with = "the run";
  link::Conversation conversation(
      {.with = with, .within = Duration(30'000), .limits = wire::kWorkerLimits});
  Result<void> there = conversation.connect(place.socket);
  if (!there) return std::unexpected(std::move(there.error()));
  // The router says who is in the run together with its welcome.
  link::FrameSocket socket(conversation.take_socket(), wire::kWorkerLimits);
  there = link::greet(socket,
                      {.role = wire::Role::Worker,
                       .version = version,
                       .program = "a stranger",
                       .token = place.token,
                       .rank = place.node,
                       .ranks = place.count},
                      with);
  if (!there) return std::unexpected(std::move(there.error()));
  return socket;
}

std::string why_not_in(const Result<link::FrameSocket>& joined) {
  return joined ? "it was let in" : joined.error().message;
}

/// The answer to a worker that says that.
std::string answer_to(const Place& place, const std::string& bytes) {
  auto socket = join(place);
  if (!socket) return socket.error().message;
  if (::send(socket->descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return "not sent";
  auto frame = socket->wait_for_frame();
  while (frame && frame->kind == wire::FrameKind::Order) frame = socket->wait_for_frame();
  if (!frame) return frame.error().message;
  // And then it is closed.
  if (socket->wait_for_frame()) return "it goes on";
  return frame->kind == wire::FrameKind::Failure ? wire::read_failure(frame->fields) : "a word";
}

std::string bytes_of(const wire::Frame& frame) {
  return wire::encode(frame, wire::kWorkerLimits).value();
}

TEST(ParallelStrangers, AreToldWhyTheyAreNotLetInOrHeard) {
  constexpr int kWorkers = 5;
  const sys::TemporaryDirectory directory;
  std::vector<std::string> refused;
  std::vector<std::string> answers;
  std::jthread stranger([&] {
    EXPECT_TRUE(
        sys::eventually([&] { return files_of(directory.path(), "place.").size() == kWorkers; }));
    std::vector<Place> places;
    for (const std::string& each : files_of(directory.path(), "place.")) {
      places.push_back(place_in(each));
    }
    Place wrong = places[0];
    wrong.token = "guessed";
    refused.push_back(why_not_in(join(wrong)));
    refused.push_back(why_not_in(join(places[0], 2)));
    Place other = places[0];
    other.node = (places[0].node + 1) % kWorkers;
    refused.push_back(why_not_in(join(other)));
    const auto joined = join(places[0]);
    refused.push_back(why_not_in(joined));
    refused.push_back(why_not_in(join(places[0])));
    answers.push_back(answer_to(places[1], std::string(200, 'g')));
    answers.push_back(
        answer_to(places[2], bytes_of({.kind = wire::FrameKind::Event,
                                       .topic = 1,
                                       .origin = wire::origin_of(places[2].node + 1, 1),
                                       .sequence = 1})));
    answers.push_back(answer_to(places[3], bytes_of({.kind = wire::FrameKind::Event,
                                                     .topic = 1,
                                                     .origin = wire::origin_of(places[3].node, 1),
                                                     .sequence = 1})));
    answers.push_back(answer_to(
        places[4], bytes_of({.kind = wire::FrameKind::Report, .fields = R"({"word": "shout"})"})));
    for (const std::string& each : files_of(directory.path(), "gate.")) std::ofstream(each) << "\n";
  });
  std::vector<std::string> notes;
  ParallelOptions options{.workers = kWorkers,
                          .note = [&](std::string_view it) { notes.emplace_back(it); }};
  const auto result = parallel(options, shells_in(directory.path()));
  stranger.join();
  // Whoever was let in was a worker, and has failed by what it said.
  ASSERT_EQ(result.failures.size(), 1U) << result.text();
  EXPECT_THAT(result.failures[0].what, HasSubstr("it was cut off: "));
  EXPECT_THAT(refused,
              ElementsAre(HasSubstr("it has no token of this run, or that has been used"),
                          HasSubstr("version"), HasSubstr(", and another rank"), "it was let in",
                          HasSubstr("it has no token of this run, or that has been used")));
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(answers[0], "this is not trainyard's protocol");
  EXPECT_EQ(answers[1], "an event that is said to be another worker's");
  EXPECT_EQ(answers[2], "an event whose name was not told");
  EXPECT_EQ(answers[3],
            "report: 'word' must be topic, want, want-not, settled, begin, finish or waited, not "
            "'shout'");
  // One for each connection that was not admitted, and one for each invalid message.
  EXPECT_EQ(notes.size(), 4U + 4U) << testing::PrintToString(notes);
  for (const std::string& each : answers) {
    EXPECT_THAT(notes, Contains(HasSubstr(each)));
  }
}

TEST(ParallelStrangers, AreNotedUpToABound) {
  const sys::TemporaryDirectory directory;
  std::jthread stranger([&] {
    EXPECT_TRUE(sys::eventually([&] { return !files_of(directory.path(), "place.").empty(); }));
    Place wrong = place_in(files_of(directory.path(), "place.").front());
    wrong.token = "guessed";
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(join(wrong));
    std::ofstream(files_of(directory.path(), "gate.").front()) << "\n";
  });
  std::vector<std::string> notes;
  const ParallelOptions options{.workers = 1,
                                .note = [&](std::string_view it) { notes.emplace_back(it); }};
  const auto result = parallel(options, shells_in(directory.path()));
  stranger.join();
  EXPECT_TRUE(result) << result.text();
  ASSERT_EQ(notes.size(), 5U) << testing::PrintToString(notes);
  EXPECT_THAT(notes.back(), testing::EndsWith("; more of these are not reported"));
}

}  // namespace
}  // namespace trainyard::workers
