"""One browser page: launch, snapshot, elements, actions, settling, replay, network guard. Playwright only."""
