"""Parts shared by encoders: devices, batches, compilation, model files."""
