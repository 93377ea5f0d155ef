# How a folder of src/ becomes a library, and its *_test.cpp files one test program.

add_library(tranship_options INTERFACE)
target_include_directories(tranship_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_compile_options(tranship_options INTERFACE -Wall -Wextra -Wconversion $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local>
                                                  -Werror=switch)
if(TRANSHIP_WERROR)
  target_compile_options(tranship_options INTERFACE -Werror)
endif()
if(TRANSHIP_SANITIZE)
  target_compile_options(tranship_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
                                                    -fno-omit-frame-pointer)
  target_link_options(tranship_options INTERFACE -fsanitize=address,undefined)
endif()
if(TRANSHIP_FUZZ) # the use of a stack after return is not looked for: it would cost more than half of all executions
  target_compile_options(tranship_options INTERFACE -fsanitize=fuzzer-no-link -fsanitize-address-use-after-return=never)
endif()

find_program(CCACHE ccache)
if(CCACHE) # paths below the source folder do not count: another clone finds what this one compiled
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()

# tranship_library(FOLDER DEPENDS target... [TEST_DEPENDS target...]): src/FOLDER/*.cpp as the target of that name ("/"
# becomes "_"); TEST_DEPENDS is what its tests need besides.
# A folder with a CMakeLists.txt of its own adds to it (generated sources, third parties).
function(tranship_library folder)
  cmake_parse_arguments(ARG "" "" "DEPENDS;TEST_DEPENDS" ${ARGN})
  string(REPLACE "/" "_" target ${folder})
  file(GLOB sources CONFIGURE_DEPENDS src/${folder}/*.cpp)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "(_test|main)\\.cpp$")
  if(NOT sources)
    set(kind INTERFACE)
    add_library(${target} INTERFACE)
  else()
    set(kind PUBLIC)
    add_library(${target} STATIC ${sources})
  endif()
  target_link_libraries(${target} ${kind} tranship_options ${ARG_DEPENDS})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME tranship_${target})
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/${folder}/CMakeLists.txt)
    add_subdirectory(src/${folder})
  endif()
  if(TRANSHIP_TESTS AND tests)
    tranship_test(${target}_test SOURCES ${tests} DEPENDS ${target} ${ARG_TEST_DEPENDS})
  endif()
endfunction()

# tranship_test(NAME SOURCES file... DEPENDS target...): a GoogleTest program that ctest runs, a process a suite.
function(tranship_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE TRANSHIP_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                             TRANSHIP_BINARY_DIR="${CMAKE_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name})
endfunction()
