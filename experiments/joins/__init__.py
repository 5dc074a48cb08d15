"""Input-Sensitive Scalable Continuous Join Query Processing (Agarwal and others)"""
