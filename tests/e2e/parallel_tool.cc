// Runs a program as the workers of a parallel run, or is the learner of one: see python_workers.py.
//
//   parallel_tool run <workers> <roles, by commas, or -> <retries> <command>...
//   parallel_tool learner
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <mutex>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "trainyard/buffer.h"
#include "trainyard/event_bus.h"
#include "trainyard/parallel.h"
#include "trainyard/remote_event.h"
#include "trainyard/worker.h"

namespace trainyard::e2e {
namespace {

constexpr RemoteEvent<Buffer> kWeights{"weights"};
constexpr RemoteEvent<Buffer> kFrames{"frames"};

void need(const Result<void>& done) {
  if (!done) throw std::runtime_error(done.error().message);
}

int run(std::span<const std::string> words) {
  ParallelOptions options{.workers = std::stoi(words[0])};
  // They outlive the run: a role is a view of its name.
  std::vector<std::string> roles;
  std::istringstream list(words[1] == "-" ? "" : words[1]);
  for (std::string each; std::getline(list, each, ',');) roles.push_back(each);
  for (const std::string& each : roles) options.roles.push_back({Role{each}});
  options.max_retries = std::stoi(words[2]);
  options.auto_recover = options.max_retries > 0;
  options.retry_delay = std::chrono::milliseconds(1);
  const auto result = parallel(options, {words.begin() + 3, words.end()});
  if (!result) std::cerr << result.text() << '\n';
  return result ? EXIT_SUCCESS : EXIT_FAILURE;
}

/// Events of the collectors.
class Heard {
 public:
  explicit Heard(EventBus& bus)
      : episodes_on_(bus.on("episode", [this](const Json& it) { take_episode(it); })),
        frames_on_(bus.on(kFrames, [this](const Buffer& it) { take_frames(it); })),
        logs_on_(bus.on("log.*", [this](std::string_view name, const Json& it) {
          const std::scoped_lock lock(mutex_);
          logs_[std::string(name)] = it;
        })) {}

  Json answer() {
    const std::scoped_lock lock(mutex_);
    return {{"episodes", episodes_}, {"ordered", ordered_}, {"frames", frames_}, {"logs", logs_}};
  }

 private:
  void take_episode(const Json& it) {
    const std::scoped_lock lock(mutex_);
    int& next = episodes_[std::to_string(it.at("node").get<int>())];
    if (it.at("number").get<int>() != next++) ordered_ = false;
  }
  /// Its shape, and of its values the sum.
  void take_frames(const Buffer& it) {
    const std::scoped_lock lock(mutex_);
    double sum = 0;
    for (const float each : it.as<float>()) sum += each;
    frames_.push_back({it.shape(), sum});
  }

  std::mutex mutex_;
  std::map<std::string, int> episodes_;
  bool ordered_ = true;
  Json frames_ = Json::array();
  Json logs_ = Json::object();
  Subscription episodes_on_;
  Subscription frames_on_;
  Subscription logs_on_;
};

int learn() {
  const auto joined = Worker::from_environment();
  if (!joined) throw std::runtime_error(joined.error().message);
  const Worker& worker = *joined;
  EventBus bus;
  worker.connect(bus);
  Heard heard(bus);
  bus.emit("config", {{"version", 1}}, retained);
  bus.emit("config", {{"version", 2}, {"names", {"é", "\" ::"}}}, retained);
  bus.emit(kWeights, Buffer::copy_of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), remote_only);
  constexpr std::int64_t kLarge = 100'000;
  const std::vector<double> values(kLarge, 0.5);
  bus.emit(kWeights, Buffer::copy_of<double>({kLarge}, std::span<const double>(values)),
           remote_only);
  need(worker.barrier("sent"));
  bus.emit("answer", heard.answer(), remote_only);
  need(worker.barrier("answered"));
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace trainyard::e2e

int main(int count, char** words) {
  try {
    const std::vector<std::string> all(words + 1, words + count);
    if (all.size() > 4 && all[0] == "run") return trainyard::e2e::run(std::span(all).subspan(1));
    if (all.size() == 1 && all[0] == "learner") return trainyard::e2e::learn();
    std::cerr << "run <workers> <roles> <retries> <command>..., or learner\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
  }
  return EXIT_FAILURE;
}
