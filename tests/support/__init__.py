"""Code that several test folders share, such as small collections, strategies, contracts and servers."""
