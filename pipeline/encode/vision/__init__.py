"""Vision encoders: models that embed screenshots."""
