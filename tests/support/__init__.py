"""Code that several folders of tests share: small collections, strategies, contracts and servers."""
