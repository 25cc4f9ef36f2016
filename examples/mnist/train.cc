// Trains one small network on MNIST: an ordinary program, which knows of trainyard only that its
// result goes into the file that $TRAINYARD_RESULT names. Without that variable it just trains.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include <fmt/format.h>

#include "mnist/idx.h"
#include "mnist/options.h"
#include "mnist/training.h"

namespace {

/// An environment variable, or `fallback` where it is unset or empty.
std::string variable(const char* name, const std::string& fallback) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return value == nullptr || *value == '\0' ? fallback : value;
}

bool write_text(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  const bool written = std::fputs(text.c_str(), file) >= 0;
  return std::fclose(file) == 0 && written;
}

int fail(const std::string& message, int code) {
  fmt::print(stderr, "mnist_train: {}\n", message);
  return code;
}

/// Lets floats too small to matter become zero. Adam's means of pixels that are rarely inked fade
/// into such numbers, and a third of the time would go into computing with them.
void flush_tiny_floats() {
#ifdef __SSE2__
  constexpr unsigned kFlushToZero = 0x8000;
  constexpr unsigned kDenormalsAreZero = 0x0040;
  _mm_setcsr(_mm_getcsr() | kFlushToZero | kDenormalsAreZero);
#endif
}

/// The command line, on top of what $MNIST_DIR and $MNIST_FRACTION say.
mnist::Result<mnist::Options> read_options(int count, char** arguments) {
  const std::string fraction = variable("MNIST_FRACTION", "1");
  const std::string data = variable("MNIST_DIR", mnist::Options{}.data);
  const std::array from_environment{"--data", data.c_str(), "--fraction", fraction.c_str()};
  mnist::Result<mnist::Options> defaults = mnist::parse_options(from_environment, {});
  if (!defaults) return defaults;
  return mnist::parse_options({arguments + 1, arguments + count}, *std::move(defaults));
}

int run(int count, char** arguments) {
  const auto options = read_options(count, arguments);
  if (!options) return fail(options.error() + "\n" + std::string(mnist::kUsage), 2);
  if (options->help) {
    fmt::print("{}", mnist::kUsage);
    return 0;
  }

  const auto train = mnist::load_dataset(options->data, "train");
  if (!train) return fail(train.error(), 1);
  const auto test = mnist::load_dataset(options->data, "t10k");
  if (!test) return fail(test.error(), 1);
  if (train->rows != test->rows || train->columns != test->columns) {
    return fail("training and test images differ in size", 1);
  }
  fmt::print("{} training images, {} test images from {}\n", train->size(), test->size(),
             options->data);

  flush_tiny_floats();
  const auto show = [&](const mnist::Progress& progress) {
    fmt::print("epoch {}/{}  loss {:.4f}  train {:.2f} %  test {:.2f} %\n", progress.epoch,
               options->epochs, progress.loss, 100 * progress.train_acc, 100 * progress.test_acc);
    std::fflush(stdout);
  };
  const std::string json = mnist::to_json(mnist::run_training(*options, *train, *test, show));
  fmt::print("{}\n", json);

  const std::string result_file = variable("TRAINYARD_RESULT", "");
  if (!result_file.empty() && !write_text(result_file, json + "\n")) {
    return fail(result_file + ": the result cannot be written", 1);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& exception) {
    // Memory that ran out, or a standard output that is gone.
    std::fprintf(stderr, "mnist_train: %s\n", exception.what());
    return 1;
  }
}
