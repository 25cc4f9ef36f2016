# trainyard_module(NAME [PLAYED] HEADERS ... SOURCES ... TESTS ... SERIAL_TESTS ... USES ... TEST_USES ...)
#
# One folder, one library trainyard::NAME, one test program beside it, and one of the
# tests that must have the machine for themselves. The files are named, never globbed: a file nobody
# names is a file nobody builds. PLAYED: tests play it through thousands of times, so that it is
# optimised a little also where it is built for debugging.
include(GoogleTest)

add_library(trainyard_flags INTERFACE)
target_compile_features(trainyard_flags INTERFACE cxx_std_23)
target_include_directories(trainyard_flags INTERFACE ${PROJECT_SOURCE_DIR}/include)
set(CMAKE_CXX_EXTENSIONS OFF)
if(TRAINYARD_DEVELOPER)
  # g++ 12 sees uninitialised members in moved variants that are not there, when it optimises; and
  # where several sources are one unit, it takes what only one of them can name for a mistake.
  # The build that is shipped only prints warnings: the optimiser of each compiler sees other mistakes
  # that are not there, and none of them may keep a user from building.
  target_compile_options(trainyard_flags INTERFACE
    $<$<CONFIG:Debug>:-Werror> -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
    -Wold-style-cast -Wextra-semi -Wimplicit-fallthrough
    $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-designated-field-initializers>
    $<$<CXX_COMPILER_ID:GNU>:-Wsign-conversion -Wno-missing-field-initializers -Wno-maybe-uninitialized -Wno-subobject-linkage>)
  target_compile_definitions(trainyard_flags INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
endif()
# What programs that compute are compiled with in every preset.
set(TRAINYARD_FAST -O3)
if(TRAINYARD_SANITIZE)
  set(TRAINYARD_FAST -O1)
  # The vptr check opens a pipe to see what memory it may read, and so reports nonsense in the tests
  # where no descriptor is left. A report needs lines and no more, and tests are not optimised, only
  # what they test: it compiles in half the time.
  target_compile_options(trainyard_flags INTERFACE
    -fsanitize=${TRAINYARD_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer
    -gline-tables-only)
  target_link_options(trainyard_flags INTERFACE -fsanitize=${TRAINYARD_SANITIZE})
endif()

# The label of a folder's tests. `process` forks, starts threads or opens sockets, `examples` trains: both may run again
# alone where they failed beside others (tools/run_tests.py). A test without a label is a unit test.
set(TRAINYARD_LABELS_process sys hardware process link journal run queue pipeline ranks workers tell library)
set(TRAINYARD_LABELS_examples mnist federated cartpole)

# A program of tests. An optional that is empty against what a test says ends the test, which is what
# it is for; tests start no threads, need not be fast, and are read with the key {{0}, 1} in place.
# Some of clang-tidy's checks would only be noise.
function(trainyard_test target library)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "PREFIX" "SOURCES;USES;PROPERTIES")
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${library} ${arg_USES} GTest::gmock_main)
  if(CMAKE_CXX_CLANG_TIDY)
    set_property(TARGET ${target} APPEND PROPERTY CXX_CLANG_TIDY
      --checks=-bugprone-unchecked-optional-access,-concurrency-mt-unsafe,-modernize-use-designated-initializers,-performance-inefficient-*)
  endif()
  set(labels)
  foreach(label process examples)
    if(arg_PREFIX IN_LIST TRAINYARD_LABELS_${label})
      set(labels LABELS ${label})
    endif()
  endforeach()
  gtest_discover_tests(${target} TEST_PREFIX ${arg_PREFIX}/ DISCOVERY_TIMEOUT 60
    PROPERTIES ${labels}
      # Tests that run beside each other are no neighbours.
      ENVIRONMENT_MODIFICATION "TRAINYARD_PROMISES=set:off" ${arg_PROPERTIES})
  # By its name run_tests knows which test has left a process.
  set(environment ${CMAKE_CURRENT_BINARY_DIR}/${target}_environment.cmake)
  file(WRITE ${environment} "foreach(test IN LISTS ${target}_TESTS)
  set_tests_properties(\"\${test}\" PROPERTIES ENVIRONMENT \"XDG_STATE_HOME=${CMAKE_BINARY_DIR}/state;RUN_TESTS_NAME=\${test}\")
endforeach()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${environment})
endfunction()

function(trainyard_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PLAYED" "" "HEADERS;SOURCES;TESTS;SERIAL_TESTS;USES;TEST_USES")
  set(library trainyard_${name})
  if(arg_SOURCES)
    add_library(${library} STATIC ${arg_SOURCES})
    if(TRAINYARD_SANITIZE OR (arg_PLAYED AND CMAKE_BUILD_TYPE STREQUAL "Debug"))
      target_compile_options(${library} PRIVATE -O1)
    endif()
    set(scope PUBLIC)
  else()
    add_library(${library} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(trainyard::${name} ALIAS ${library})
  list(TRANSFORM arg_HEADERS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR PARENT_PATH root)
  target_sources(${library} ${scope} FILE_SET HEADERS
    BASE_DIRS ${root} FILES ${arg_HEADERS})
  target_link_libraries(${library} ${scope} trainyard_flags ${arg_USES})

  if(TRAINYARD_DEVELOPER)
    set_target_properties(${library} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
    if(arg_TESTS)
      trainyard_test(${name}_test ${library} PREFIX ${name} SOURCES ${arg_TESTS} USES ${arg_TEST_USES})
    endif()
    if(arg_SERIAL_TESTS)
      trainyard_test(${name}_serial_test ${library} PREFIX ${name} SOURCES ${arg_SERIAL_TESTS}
        USES ${arg_TEST_USES} PROPERTIES RUN_SERIAL TRUE)
    endif()
  endif()
endfunction()
