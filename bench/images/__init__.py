"""The container images, built and tried on one machine without a registry of images."""
