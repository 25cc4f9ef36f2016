// Ten folds of a cross-validation: each loads while others train, in a process of its own.
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <trainyard/trainyard.h>

using namespace trainyard::literals;

struct Fold : trainyard::Task {
  explicit Fold(int k) : Task({.id = "fold-" + std::to_string(k), .memory = 50_MB}), k(k) {}
  void load() override { data.assign(1'000, 1.0 + k); }
  trainyard::Json train(const trainyard::Device& device) override {
    double sum = 0;
    for (const double value : data) sum += std::sqrt(value);
    return {{"mean", sum / 1'000}, {"device", device.name}};
  }
  int k;
  std::vector<double> data;
};

int main() {
  trainyard::TaskGroup folds{"folds"};
  for (int k = 0; k < 10; ++k) folds.add<Fold>(k);
  trainyard::Yard yard;
  const auto done = yard.run(folds);
  if (!done) std::cerr << done.error().message << '\n';
  for (const auto& task : folds.tasks()) std::cout << task.id() << ' ' << task.result() << '\n';
  return done && done->failed == 0 ? 0 : 1;
}
