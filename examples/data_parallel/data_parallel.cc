// MNIST trained by several processes as one, with the library: every rank has the same network and
// a part of each batch; the gradients of all ranks are averaged by the executor on their way
// through.
//
//   data_parallel [--ranks 4] [--epochs 3] [--data DIR]
//
// This program is its own rank. The parent has neither images nor a network: it hands the mean of
// one step's gradients on to the next step, in the memory in which it was made.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "mnist/idx.h"
#include "mnist/network.h"
#include "mnist/random.h"
#include "mnist/training.h"
#include "trainyard/rank_executor.h"
#include "trainyard/rank_program.h"

namespace trainyard {
namespace {

constexpr std::size_t kBatch = 64;  ///< Of all ranks together.
constexpr int kHidden = 128;
constexpr float kRate = 1e-3F;
constexpr std::uint64_t kSeed = 1;

/// One of the ranks: tasks `step` and `score`.
class Trainer final : public Executor {
 public:
  explicit Trainer(const Arguments& given)
      : train_(mnist::need_dataset(given.get<std::string>("data"), "train")),
        test_(mnist::need_dataset(given.get<std::string>("data"), "t10k")),
        network_(mnist::make_network(train_, kHidden, kSeed)),
        random_(kSeed),
        order_(train_.size()) {
    for (std::size_t image = 0; image < order_.size(); ++image) order_[image] = image;
  }

  Shareable execute(std::string_view task, const Shareable& input, RankContext& context,
                    std::stop_token) override {
    if (const Buffer* const mean = input.buffer("gradients")) {
      network_.set_gradients(mean->as<float>());
      network_.step(kRate);
    }
    if (task == "step") return step(context);
    if (task == "score") return score();
    return Shareable::reply(ReturnCode::TaskUnknown, fmt::format("no task '{}'", task));
  }

 private:
  /// The gradients of this rank's part of the next batch.
  Shareable step(RankContext& context) {
    // All ranks shuffle alike, so that nobody needs to be told which images are his.
    if (next_ == 0) random_.shuffle(order_);
    const std::size_t count = std::min(kBatch, order_.size() - next_);
    const auto rank = static_cast<std::size_t>(context.rank().value_or(0));
    const auto ranks = static_cast<std::size_t>(context.ranks());
    const std::size_t first = next_ + (count * rank / ranks);
    const std::size_t last = next_ + (count * (rank + 1) / ranks);
    next_ = next_ + count == order_.size() ? 0 : next_ + count;
    const mnist::BatchResult result =
        mnist::find_gradients(network_, train_, std::span(order_).subspan(first, last - first));
    auto gradients = context.alloc(DType::Float32, {static_cast<std::int64_t>(network_.size())});
    if (!gradients) throw std::runtime_error(gradients.error().message);
    network_.gradients(gradients->fill<float>());
    Shareable reply;
    reply.set("loss", result.loss / static_cast<double>(last - first));
    reply.set("epoch_done", next_ == 0);
    reply.set_buffer("gradients", *std::move(gradients));
    return reply;
  }

  Shareable score() {
    Shareable reply;
    reply.set("test_acc", mnist::accuracy_of(network_, test_));
    return reply;
  }

  mnist::Dataset train_;
  mnist::Dataset test_;
  mnist::Network network_;
  mnist::Random random_;
  std::vector<std::size_t> order_;
  std::size_t next_ = 0;
};

struct Options {
  int ranks = 4;
  int epochs = 3;
  std::string data = "examples/mnist/data";
};

std::optional<Options> read(std::span<char* const> words) {
  Options options;
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
    const std::string_view name = words[i];
    if (name == "--data") {
      options.data = words[i + 1];
    } else if (name == "--ranks" || name == "--epochs") {
      (name == "--ranks" ? options.ranks : options.epochs) = std::atoi(words[i + 1]);
    } else {
      return std::nullopt;
    }
  }
  if (words.size() % 2 == 0 || options.epochs < 1) return std::nullopt;
  return options;
}

/// True when the reply is one; else says why not.
bool holds(const Shareable& reply) {
  if (reply.code() == ReturnCode::Ok) return true;
  std::cerr << "data_parallel: " << reply.message() << '\n' << reply.traceback();
  return false;
}

int train(const Options& options, const ComponentRegistry& registry) {
  const Json components = {
      {{"id", "trainer"}, {"type", "trainer"}, {"args", {{"data", options.data}}}}};
  RankExecutor trainer({.ranks = options.ranks,
                        .executor = "trainer",
                        .components = components.dump(),
                        .result = RankResult::Mean},
                       registry);
  RankContext context;
  Shareable step;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    do {
      step = trainer.execute("step", step, context);
      if (!holds(step)) return EXIT_FAILURE;
    } while (!step.get("epoch_done").get<bool>());
    const Shareable score = trainer.execute("score", step, context);
    if (!holds(score)) return EXIT_FAILURE;
    // What scoring has applied is not to be applied again.
    step = Shareable();
    std::cout << fmt::format("epoch {}: test {:.2f} %", epoch,
                             100 * score.get("test_acc").get<double>())
              << '\n'
              << std::flush;
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  using trainyard::argument;
  trainyard::ComponentRegistry registry;
  registry.add<trainyard::Trainer>("trainer", {argument<std::string>("data")});
  if (const auto code = trainyard::run_as_rank(registry)) return *code;
  const auto options = trainyard::read({argv, static_cast<std::size_t>(argc)});
  if (!options) {
    std::cerr << "usage: data_parallel [--ranks COUNT] [--epochs COUNT] [--data DIR]\n";
    return 2;
  }
  return trainyard::train(*options, registry);
}
