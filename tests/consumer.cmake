# One consumer of heed, as ctest runs it: cmake -DCONSUMER=... -P consumer.cmake
#   install         installs this build to a clean prefix
#   package         find_package(heed) on that prefix
#   pkg_config      heed.pc of that prefix, compiler called by hand
#   subdirectory    add_subdirectory(heed), static, then installed to a second clean prefix;
#                   AVX2 and the baseline only, as the preset dev has it: kernels compile slowly
#   static_package  find_package(heed) on the second prefix
cmake_minimum_required(VERSION 3.25)
set(root ${HEED_BINARY_DIR}/consumer)
set(sources ${HEED_SOURCE_DIR}/tests)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(build_and_use source)
  set(build ${root}/${CONSUMER})
  file(REMOVE_RECURSE ${build})
  run(${CMAKE_COMMAND} -S ${source} -B ${build} -G ${GENERATOR}
      -DCMAKE_BUILD_TYPE=${BUILD_TYPE}
      -DCMAKE_C_COMPILER=${C_COMPILER} -DCMAKE_CXX_COMPILER=${CXX_COMPILER} ${ARGN})
  run(${CMAKE_COMMAND} --build ${build})
  run(${build}/use_c)
  run(${build}/use_cpp)
endfunction()

if(CONSUMER STREQUAL "install")
  file(REMOVE_RECURSE ${root}/prefix)
  run(${CMAKE_COMMAND} --install ${HEED_BINARY_DIR} --prefix ${root}/prefix)

elseif(CONSUMER STREQUAL "package")
  build_and_use(${sources}/consumer_package -DCMAKE_PREFIX_PATH=${root}/prefix)

elseif(CONSUMER STREQUAL "static_package")
  build_and_use(${sources}/consumer_package -DCMAKE_PREFIX_PATH=${root}/static_prefix)

elseif(CONSUMER STREQUAL "subdirectory")
  build_and_use(${sources}/consumer_subdirectory
      -DHEED_SOURCE_DIR=${HEED_SOURCE_DIR} -DBUILD_SHARED_LIBS=OFF
      "-DHEED_HWY_DEFINITIONS=HWY_DISABLED_TARGETS=((HWY_AVX2-1)|HWY_SSE4|HWY_SSSE3)")
  file(REMOVE_RECURSE ${root}/static_prefix)
  run(${CMAKE_COMMAND} --install ${root}/subdirectory --prefix ${root}/static_prefix)

elseif(CONSUMER STREQUAL "pkg_config")
  find_program(PKG_CONFIG NAMES pkg-config pkgconf REQUIRED)
  file(GLOB_RECURSE pc ${root}/prefix/*/heed.pc)
  cmake_path(GET pc PARENT_PATH pc_dir)
  set(ENV{PKG_CONFIG_PATH} ${pc_dir})
  execute_process(COMMAND ${PKG_CONFIG} --static --cflags --libs heed
                  OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${PKG_CONFIG} --variable=libdir heed
                  OUTPUT_VARIABLE libdir OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  file(MAKE_DIRECTORY ${root}/pkg_config)
  run(${C_COMPILER} -std=c99 -pedantic -Wall -Wextra -Werror
      ${sources}/consumer_package/use.c -o ${root}/pkg_config/use_c
      ${flags} -lm -Wl,-rpath,${libdir})
  run(${root}/pkg_config/use_c)

else()
  message(FATAL_ERROR "unknown CONSUMER '${CONSUMER}'")
endif()
