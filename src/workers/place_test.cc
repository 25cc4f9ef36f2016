#include "workers/place.h"

#include <gtest/gtest.h>

namespace trainyard::workers {
namespace {

TEST(Place, IsReadAsItWasWrittenButForItsToken) {
  Place place{.socket = "/tmp/x/control",
              .token = "secret",
              .node = 7,
              .index = 1,
              .count = 3,
              .port = 50'516,
              .life = 2,
              .labels = {"gpu \"x\""},
              .roles = {"learner"}};
  const std::string text = place_text(place);
  EXPECT_EQ(text.find("secret"), std::string::npos);
  place.token.clear();
  EXPECT_EQ(read_place(text).value(), place);
}

TEST(Place, ThatIsWrongIsNamed) {
  const auto fault = [](const char* text) { return read_place(text).error().message; };
  EXPECT_EQ(fault("x").substr(0, 17), "TRAINYARD_WORKER:");
  EXPECT_EQ(fault("{}"), "TRAINYARD_WORKER: 'socket' is missing");
  EXPECT_EQ(fault(R"({"socket":"s","node":-1})"),
            "TRAINYARD_WORKER: 'node' must be a whole number from 0 to 65535");
}

}  // namespace
}  // namespace trainyard::workers
