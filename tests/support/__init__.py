"""Code that several folders of tests share, such as small collections, strategies, contracts and servers."""
