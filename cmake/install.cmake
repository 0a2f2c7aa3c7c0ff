# What `cmake --install` puts where for those who link: libtile_launch (shared and static) runs kernels, libtile
# compiles too; headers, CMake package and pkg-config files. The programs install themselves in tools/.
find_package(Threads REQUIRED)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(TARGET tile_driver)
  # The compiler as one library: LLVM and all else that is not the API stay inside, but for what debuggers look for.
  add_library(tile_shared SHARED $<TARGET_OBJECTS:tile_driver> $<TARGET_OBJECTS:tile_launch>
    $<TARGET_OBJECTS:tile_scalar> $<TARGET_OBJECTS:tile_base>)
  target_link_libraries(tile_shared PRIVATE tile_parser tile_cpu tile_ptx tile_mlir_bridge m Threads::Threads)
  target_link_options(tile_shared PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/libtile.map $<$<CONFIG:Release>:-s> $<$<NOT:$<BOOL:${TILE_SANITIZE}>>:-Wl,--no-undefined>)
  set_target_properties(tile_shared PROPERTIES
    OUTPUT_NAME tile EXPORT_NAME tile LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
endif()

set(TILE_LIBRARIES tile_launch_shared tile_launch_static)
if(TARGET tile_shared)
  list(APPEND TILE_LIBRARIES tile_shared)
endif()
foreach(library ${TILE_LIBRARIES})
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
set_target_properties(tile_launch_shared PROPERTIES EXPORT_NAME launch)

install(TARGETS ${TILE_LIBRARIES} EXPORT tile-targets COMPONENT libraries
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libraries
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libraries)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/tile DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libraries)
set(TILE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tile)
install(EXPORT tile-targets NAMESPACE tile:: DESTINATION ${TILE_PACKAGE_DIR} COMPONENT libraries)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/tile-config.cmake.in ${CMAKE_BINARY_DIR}/tile-config.cmake
  INSTALL_DESTINATION ${TILE_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tile-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tile-config.cmake ${CMAKE_BINARY_DIR}/tile-config-version.cmake
  DESTINATION ${TILE_PACKAGE_DIR} COMPONENT libraries)

# The prefix as seen from the .pc files, so that the tree may be moved.
file(RELATIVE_PATH TILE_PC_PREFIX /root/${CMAKE_INSTALL_LIBDIR}/pkgconfig /root)
string(REGEX REPLACE "/$" "" TILE_PC_PREFIX ${TILE_PC_PREFIX})
set(TILE_PC_NAMES tile_launch)
if(TARGET tile_driver)
  list(APPEND TILE_PC_NAMES tile)
endif()
foreach(name ${TILE_PC_NAMES})
  configure_file(${CMAKE_SOURCE_DIR}/cmake/${name}.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libraries)
endforeach()
