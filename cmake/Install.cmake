# What `cmake --install` puts in place: the program, the public headers, and the library as one archive (and the Rust
# part as another: ar does not join what rustc made), so that find_package(tranship) gives a target tranship::tranship
# that needs no knowledge of our folders.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Users before what they use: the order matters to no one but makes the archive's contents deterministic.
set(parts generation exporters tasks models nn formats_onnx formats_pt2 onnx_proto passes_recognize passes interpret text checkpoint ir base)
set(script "CREATE ${CMAKE_BINARY_DIR}/libtranship.a\n")
foreach(part IN LISTS parts)
  get_target_property(type ${part} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    string(APPEND script "ADDLIB $<TARGET_FILE:${part}>\n")
    list(APPEND archives ${part})
  endif()
endforeach()
string(APPEND script "ADDMOD $<JOIN:$<TARGET_OBJECTS:models_table>,\nADDMOD >\n")
list(APPEND archives models_table $<TARGET_OBJECTS:models_table>)
string(APPEND script "SAVE\nEND\n")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/libtranship.mri CONTENT "${script}")
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/libtranship.a
  COMMAND ${CMAKE_COMMAND} -E rm -f ${CMAKE_BINARY_DIR}/libtranship.a
  COMMAND ${CMAKE_AR} -M < ${CMAKE_BINARY_DIR}/libtranship.mri
  DEPENDS ${archives} ${CMAKE_BINARY_DIR}/libtranship.mri
  COMMENT "Joining the folders' libraries to libtranship.a")
add_custom_target(tranship_archive ALL DEPENDS ${CMAKE_BINARY_DIR}/libtranship.a)

install(FILES ${CMAKE_BINARY_DIR}/libtranship.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(TRANSHIP_RUST_ARCHIVE "")
if(TARGET text_rust)
  get_target_property(rust_library text_rust IMPORTED_LOCATION)
  install(FILES ${rust_library} DESTINATION ${CMAKE_INSTALL_LIBDIR})
  cmake_path(GET rust_library FILENAME TRANSHIP_RUST_ARCHIVE)
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/tranship DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tranship)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/tranship-config.cmake.in ${CMAKE_BINARY_DIR}/tranship-config.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tranship-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tranship-config.cmake ${CMAKE_BINARY_DIR}/tranship-config-version.cmake
        DESTINATION ${package_dir})
