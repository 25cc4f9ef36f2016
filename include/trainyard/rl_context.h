// Contexts for reinforcement learning, to build upon (DI-engine `OnlineRLContext`,
// `OfflineRLContext`): the counters that most loops keep.
//
//   struct Train : trainyard::OnlineContext {
//     std::vector<Trajectory> trajectories;
//     static constexpr auto kept = OnlineContext::kept + trainyard::keep<&Train::best>;
//   };
//
// Values, as every context.
#pragma once

#include <cstdint>
#include <limits>

#include "trainyard/context.h"

namespace trainyard {

/// Collects while it learns.
struct OnlineContext : Context {
  std::int64_t env_step = 0;
  std::int64_t env_episode = 0;
  std::int64_t train_iter = 0;
  std::int64_t last_eval_iter = -1;
  double last_eval_value = -std::numeric_limits<double>::infinity();
  /// The result of the evaluation of this iteration, if there was one.
  double eval_value = -std::numeric_limits<double>::infinity();

  static constexpr auto kept =
      keep<&OnlineContext::env_step, &OnlineContext::env_episode, &OnlineContext::train_iter,
           &OnlineContext::last_eval_iter, &OnlineContext::last_eval_value>;
};

/// Learns from what others collected.
struct OfflineContext : Context {
  std::int64_t trained_env_step = 0;
  std::int64_t train_epoch = 0;
  std::int64_t train_iter = 0;
  std::int64_t last_eval_iter = -1;
  double last_eval_value = -std::numeric_limits<double>::infinity();
  /// The result of the evaluation of this iteration, if there was one.
  double eval_value = -std::numeric_limits<double>::infinity();

  static constexpr auto kept = keep<&OfflineContext::trained_env_step, &OfflineContext::train_epoch,
                                    &OfflineContext::train_iter, &OfflineContext::last_eval_iter,
                                    &OfflineContext::last_eval_value>;
};

}  // namespace trainyard
