"""Storage backends: local disks and S3-compatible buckets behind one commit protocol."""
