#include "wire/policies.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"

namespace trainyard::wire {
namespace {

TEST(Policies, AreReadAsTheyWereWrittenWhateverTheySay) {
  const model::Policy all{.cpu_utilization_max = 0.1,
                          .memory_utilization_max = 0.2,
                          .memory_remain = {1},
                          .gpu_strategy = model::GpuStrategy::Performance,
                          .gpu_reverse = true,
                          .gpu_avoids_others = false,
                          .gpu_memory_utilization_max = 0.3,
                          .gpu_utilization_max = 0.4,
                          .gpu_memory_remain = Bytes{2},
                          .gpu_memory_least = {3},
                          .processes_max = 4,
                          .waiting_max = 5,
                          .load_retries = 6,
                          .train_retries = 7,
                          .machine_patience = Duration{16},
                          .auto_adjust = true,
                          .looks_ahead = false,
                          .stop_grace = Duration{8},
                          .passes_max = 9,
                          .passed_time_max = Duration{10},
                          .watches_memory = true,
                          .kernel_keeps_limits = true,
                          .gpu_linger_max = Duration{11},
                          .gpu_settle_max = Duration{12},
                          .gpu_gone_max = Duration{13},
                          .gpu_steady_after = Duration{14},
                          .try_first_time = Duration{15}};
  const std::string text =
      R"({"cpu_utilization_max":0.1,"memory_utilization_max":0.2,"memory_remain":1,)"
      R"("gpu_strategy":"performance","gpu_reverse":true,"gpu_avoids_others":false,)"
      R"("gpu_memory_utilization_max":0.3,"gpu_utilization_max":0.4,"gpu_memory_remain":2,)"
      R"("gpu_memory_least":3,"processes_max":4,"waiting_max":5,"load_retries":6,)"
      R"("train_retries":7,"machine_patience":16,"auto_adjust":true,"looks_ahead":false,)"
      R"("stop_grace":8,"passes_max":9,)"
      R"("passed_time_max":10,"watches_memory":true,"kernel_keeps_limits":true,)"
      R"("gpu_linger_max":11,"gpu_settle_max":12,"gpu_gone_max":13,"gpu_steady_after":14,)"
      R"("try_first_time":15})";
  EXPECT_EQ(to_text(all), text);
  EXPECT_EQ(to_text(policy_from_text(text).value()), text);
  EXPECT_EQ(to_text(model::Policy{}), "{}");
  EXPECT_EQ(to_text(policy_from_text("{}").value()), "{}");
}

TEST(Policies, SayWhereTheyAreWrong) {
  const auto fault = [](const char* text) {
    const Result<model::Policy> read = policy_from_text(text);
    return read ? "none" : read.error().message;
  };
  EXPECT_EQ(fault(R"({"gpu_strategy":"best"})"),
            "policy: gpu_strategy: must be one of pci, total_memory, remaining_memory, "
            "performance, best_fit, idle_first, not 'best'");
  EXPECT_EQ(fault("[]"), "policy: must be an object, not array");
}

}  // namespace
}  // namespace trainyard::wire
