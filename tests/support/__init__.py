"""What tests share: small collections, strategies, contracts, servers."""
