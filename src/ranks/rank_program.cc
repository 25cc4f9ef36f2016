#include "trainyard/rank_program.h"

#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>

#include "base/result.h"
#include "link/conversation.h"
#include "link/frame_socket.h"
#include "model/rank_environment.h"
#include "ranks/launch_line.h"
#include "ranks/log_end.h"
#include "ranks/rank_process.h"
#include "sys/environment.h"
#include "sys/this_process.h"
#include "wire/hello.h"
#include "wire/rank.h"

namespace trainyard {
namespace {

constexpr const char* kParent = "the executor of this rank";

/// The value, which is gone from the environment then: what this process starts is no rank.
std::optional<std::string> take_variable(const std::string& name) {
  auto taken = sys::variable(name.c_str());
  sys::set_variable(name + "=");
  return taken;
}

/// For launchers that mix what their ranks print.
void write_to_log(const std::string& directory, int rank) {
  const auto log = sys::open_log(ranks::log_of_rank(directory, rank), sys::IfThere::Empty);
  if (log) sys::print_to(*log);
}

int complain(const std::string& what) {
  std::cerr << "trainyard: " << what << '\n' << std::flush;
  return EXIT_FAILURE;
}

}  // namespace

std::optional<int> run_as_rank(const ComponentRegistry& registry) {
  const auto socket = take_variable("TRAINYARD_RANK_SOCKET");
  const auto token = take_variable("TRAINYARD_RANK_TOKEN");
  const auto logs = take_variable("TRAINYARD_RANK_LOGS");
  if (!socket || !token) return std::nullopt;
  const Result<ranks::RankNumber> number = ranks::rank_number(sys::variable);
  if (number && logs) write_to_log(*logs, number->rank);
  link::Conversation conversation({.with = kParent, .limits = wire::kRankLimits});
  if (const Result<void> there = conversation.connect(*socket); !there) {
    return complain(there.error().message);
  }
  wire::Hello hello{.role = wire::Role::Rank,
                    .version = 1,
                    .program = number ? "trainyard" : number.error().message,
                    .token = *token};
  if (number) {
    hello.rank = number->rank;
    hello.ranks = number->ranks;
  }
  // A request of the parent may come together with its welcome.
  link::FrameSocket requests(conversation.take_socket(), wire::kRankLimits);
  if (const Result<void> welcome = link::greet(requests, hello, kParent); !welcome) {
    return complain(welcome.error().message);
  }
  if (!number) return complain(number.error().message);
  for (const std::string& each : model::rank_environment({.rank = number->rank,
                                                          .local_rank = number->local_rank,
                                                          .ranks = number->ranks.value_or(1)})) {
    sys::set_variable(each);
  }
  ranks::RankProcess rank(std::move(requests), registry, number->local_rank);
  const Result<void> done = rank.run();
  return done ? EXIT_SUCCESS : complain(done.error().message);
}

}  // namespace trainyard
